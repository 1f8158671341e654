/* scalar: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "scalar.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static scalar_work t;
static float x[1];
static float value[1];
static float dx[1];
static float y[1];
static float dy[1];

static void draw(uint32_t step) {
    figures_draw_f32(x, 1, 100u, step, 0.100000001f, 0.800000012f);
    figures_spoil(value, sizeof value);
    figures_spoil(dx, sizeof dx);
    figures_draw_f32(y, 1, 103u, step, 0.100000001f, 0.800000012f);
    figures_spoil(dy, sizeof dy);
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", SCALAR_OK, SCALAR_OK);
    draw(0);
    figures_status("scalar_polynomial", scalar_polynomial(&t, x[0], value, dx), SCALAR_OK);
    {
        static const float want[] = {0.445573598f};
        figures_compare("value", value, want, 1, 4.45573596e-06f);
    }
    {
        static const float want[] = {2.69143939f};
        figures_compare("dx", dx, want, 1, 2.69143948e-05f);
    }
    draw(1);
    figures_status("scalar_polynomial", scalar_polynomial(&t, x[0], value, dx), SCALAR_OK);
    {
        static const float want[] = {2.04186487f};
        figures_compare("value", value, want, 1, 2.0418649e-05f);
    }
    {
        static const float want[] = {3.9800055f};
        figures_compare("dx", dx, want, 1, 3.98000557e-05f);
    }
    draw(0);
    figures_status("scalar_quotient", scalar_quotient(&t, x[0], y[0], value, dx, dy), SCALAR_OK);
    {
        static const float want[] = {0.931193471f};
        figures_compare("value", value, want, 1, 9.31193426e-06f);
    }
    {
        static const float want[] = {0.593359172f};
        figures_compare("dx", dx, want, 1, 5.93359164e-06f);
    }
    {
        static const float want[] = {1.54859877f};
        figures_compare("dy", dy, want, 1, 1.54859881e-05f);
    }
    draw(1);
    figures_status("scalar_quotient", scalar_quotient(&t, x[0], y[0], value, dx, dy), SCALAR_OK);
    {
        static const float want[] = {1.51677215f};
        figures_compare("value", value, want, 1, 1.51677214e-05f);
    }
    {
        static const float want[] = {-0.214604467f};
        figures_compare("dx", dx, want, 1, 2.14604461e-06f);
    }
    {
        static const float want[] = {0.486863762f};
        figures_compare("dy", dy, want, 1, 4.86863792e-06f);
    }
    draw(0);
    figures_status("scalar_power", scalar_power(&t, x[0], y[0], value, dx, dy), SCALAR_OK);
    {
        static const float want[] = {6.38595867f};
        figures_compare("value", value, want, 1, 6.38595884e-05f);
    }
    {
        static const float want[] = {1.63771296f};
        figures_compare("dx", dx, want, 1, 1.63771292e-05f);
    }
    {
        static const float want[] = {-19.2360401f};
        figures_compare("dy", dy, want, 1, 0.0001923604f);
    }
    draw(1);
    figures_status("scalar_power", scalar_power(&t, x[0], y[0], value, dx, dy), SCALAR_OK);
    {
        static const float want[] = {3.67714953f};
        figures_compare("value", value, want, 1, 3.67714965e-05f);
    }
    {
        static const float want[] = {2.10817122f};
        figures_compare("dx", dx, want, 1, 2.10817125e-05f);
    }
    {
        static const float want[] = {-2.15927887f};
        figures_compare("dy", dy, want, 1, 2.15927903e-05f);
    }
    draw(0);
    figures_status("scalar_twice", scalar_twice(&t, x[0], y[0], value, dx, dy), SCALAR_OK);
    {
        static const float want[] = {-0.261050791f};
        figures_compare("value", value, want, 1, 2.61050809e-06f);
    }
    {
        static const float want[] = {-0.667840421f};
        figures_compare("dx", dx, want, 1, 6.67840413e-06f);
    }
    {
        static const float want[] = {2.32266593f};
        figures_compare("dy", dy, want, 1, 2.32266593e-05f);
    }
    draw(1);
    figures_status("scalar_twice", scalar_twice(&t, x[0], y[0], value, dx, dy), SCALAR_OK);
    {
        static const float want[] = {1.03565609f};
        figures_compare("value", value, want, 1, 1.03565608e-05f);
    }
    {
        static const float want[] = {1.03202379f};
        figures_compare("dx", dx, want, 1, 1.03202374e-05f);
    }
    {
        static const float want[] = {2.22089124f};
        figures_compare("dy", dy, want, 1, 2.22089129e-05f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    figures_status("scalar_polynomial(NULL, x[0], value, dx)", scalar_polynomial(NULL, x[0], value, dx),
                   SCALAR_ERR_NULL);
    figures_status("scalar_polynomial(&t, x[0], NULL, dx)", scalar_polynomial(&t, x[0], NULL, dx),
                   SCALAR_ERR_NULL);
    figures_status("scalar_polynomial(&t, x[0], value, NULL)", scalar_polynomial(&t, x[0], value, NULL),
                   SCALAR_ERR_NULL);
    figures_status("scalar_quotient(NULL, x[0], y[0], value, dx, dy)",
                   scalar_quotient(NULL, x[0], y[0], value, dx, dy), SCALAR_ERR_NULL);
    figures_status("scalar_quotient(&t, x[0], y[0], NULL, dx, dy)",
                   scalar_quotient(&t, x[0], y[0], NULL, dx, dy), SCALAR_ERR_NULL);
    figures_status("scalar_quotient(&t, x[0], y[0], value, NULL, dy)",
                   scalar_quotient(&t, x[0], y[0], value, NULL, dy), SCALAR_ERR_NULL);
    figures_status("scalar_quotient(&t, x[0], y[0], value, dx, NULL)",
                   scalar_quotient(&t, x[0], y[0], value, dx, NULL), SCALAR_ERR_NULL);
    figures_status("scalar_power(NULL, x[0], y[0], value, dx, dy)",
                   scalar_power(NULL, x[0], y[0], value, dx, dy), SCALAR_ERR_NULL);
    figures_status("scalar_power(&t, x[0], y[0], NULL, dx, dy)", scalar_power(&t, x[0], y[0], NULL, dx, dy),
                   SCALAR_ERR_NULL);
    figures_status("scalar_power(&t, x[0], y[0], value, NULL, dy)",
                   scalar_power(&t, x[0], y[0], value, NULL, dy), SCALAR_ERR_NULL);
    figures_status("scalar_power(&t, x[0], y[0], value, dx, NULL)",
                   scalar_power(&t, x[0], y[0], value, dx, NULL), SCALAR_ERR_NULL);
    figures_status("scalar_twice(NULL, x[0], y[0], value, dx, dy)",
                   scalar_twice(NULL, x[0], y[0], value, dx, dy), SCALAR_ERR_NULL);
    figures_status("scalar_twice(&t, x[0], y[0], NULL, dx, dy)", scalar_twice(&t, x[0], y[0], NULL, dx, dy),
                   SCALAR_ERR_NULL);
    figures_status("scalar_twice(&t, x[0], y[0], value, NULL, dy)",
                   scalar_twice(&t, x[0], y[0], value, NULL, dy), SCALAR_ERR_NULL);
    figures_status("scalar_twice(&t, x[0], y[0], value, dx, NULL)",
                   scalar_twice(&t, x[0], y[0], value, dx, NULL), SCALAR_ERR_NULL);
}
