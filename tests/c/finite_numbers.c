/* ag_all_finite of arrays of each length up to 40, finite or with one number that is not, at each place;
 * exits with the number of wrong answers. */
#include "ag_guard.h"

#include <math.h>

enum { MOST = 40, OTHERS = 4 };

int main(void) {
    const float others[OTHERS] = {INFINITY, -INFINITY, NAN, -NAN};
    float x[MOST + 2];
    int wrong = 0;
    x[0] = x[MOST + 1] = NAN; /* around the array */
    for (int n = 0; n <= MOST; n++) {
        for (int i = 1; i <= MOST; i++) {
            x[i] = i % 3 == 0 ? 3.4e38f : i % 3 == 1 ? -1e-45f : -3.4e38f;
        }
        wrong += ag_all_finite(x + 1, n) != 1;
        x[n + 1] = NAN; /* after the array */
        wrong += ag_all_finite(x + 1, n) != 1;
        for (int i = 1; i <= n; i++) {
            for (int k = 0; k < OTHERS; k++) {
                const float finite = x[i];
                x[i] = others[k];
                wrong += ag_all_finite(x + 1, n) != 0;
                x[i] = finite;
            }
        }
    }
    return wrong < 64 ? wrong : 64;
}
