/* Functions of ag_math.h for Cortex-M55: those of Cortex-M4F, as it has FMA too, and compilers call functions
 * for each element: ag_expf_armv7em, ag_sigmoidf_armv7em, ag_tanhf_armv7em, ag_erff_armv7em, ag_sinf_armv7em,
 * ag_cosf_armv7em. */
#ifndef AG_MATH_MVE_H
#define AG_MATH_MVE_H

#include "armv7em/ag_math_armv7em.h"

#endif
