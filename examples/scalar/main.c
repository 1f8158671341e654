/* Prints values and derivatives of the functions of model.py at a few points. */
#include "scalar.h"

#include "ag_console.h"
#include "ag_main.h"

static scalar_work work;

static void check(const char *doing, int status) {
    ag_require(doing, status, scalar_strstatus(status));
}

static void row(const char *name, float x, float y, float value, float dx, float dy) {
    ag_print_left(name, 12);
    ag_print_f32(x, 6, 2);
    ag_print_f32(y, 8, 2);
    ag_print_f32(value, 12, 5);
    ag_print_f32(dx, 12, 5);
    ag_print_f32(dy, 12, 5);
    ag_print("\n");
}

int main(void) {
    static const float points[][2] = {{0.25f, 2.0f}, {1.0f, 1.0f}, {2.5f, 0.5f}};
    ag_print("scalar on ");
    ag_print(ag_board_name());
    ag_print(": values and derivatives\n\nfunction         x       y       value          dx          dy\n");
    for (int32_t i = 0; i < 3; i++) {
        const float x = points[i][0], y = points[i][1];
        float value, dx, dy;
        check("polynomial", scalar_polynomial(&work, x, &value, &dx));
        row("polynomial", x, y, value, dx, 0.0f);
        check("quotient", scalar_quotient(&work, x, y, &value, &dx, &dy));
        row("quotient", x, y, value, dx, dy);
        check("power", scalar_power(&work, x, y, &value, &dx, &dy));
        row("power", x, y, value, dx, dy);
        check("twice", scalar_twice(&work, x, y, &value, &dx, &dy));
        row("twice", x, y, value, dx, dy);
    }
    ag_print_memory();
    return 0;
}
