/* What tiles/products_s8.c passes to a backend. */
#ifndef AG_TILES_PRODUCTS_S8_H
#define AG_TILES_PRODUCTS_S8_H

#include <stdint.h>

/* The output channels of a group: `count` rows of k weights. */
typedef struct ag_rows_s8 {
    const int8_t *w;
    const int32_t *bias, *multiplier;
    const int8_t *shift;
    int32_t count, k;
    const struct ag_output_s8 *output;
} ag_rows_s8;

#endif
