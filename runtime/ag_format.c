/* Exact decimal digits of a float: |x| = m 2^e is an integer times a power of ten, m 2^e or m 5^-e 10^e, of
 * at most 112 digits; these are computed and rounded once. About 300 bytes of stack. */
#include "ag_console.h"

#include <stdbool.h>
#include <string.h>

enum { LIMBS = 13, LIMB_DIGITS = 9, DIGITS = LIMBS * LIMB_DIGITS };

typedef struct decimal {
    int32_t count; /* digits in `digit`, no leading zero; 0 for zero */
    int32_t point; /* the value is 0.d0 d1 d2 ... times 10^point */
    char digit[DIGITS];
} decimal;

static void multiply(uint32_t *limb, uint32_t factor) {
    uint64_t carry = 0;
    for (int32_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)limb[i] * factor;
        limb[i] = (uint32_t)(carry % 1000000000u);
        carry /= 1000000000u;
    }
}

static void expand(decimal *d, uint32_t mantissa, int32_t exponent) {
    uint32_t limb[LIMBS] = {mantissa};
    const uint32_t base = exponent < 0 ? 5u : 2u;
    for (int32_t left = exponent < 0 ? -exponent : exponent; left > 0;) {
        uint32_t factor = base;
        for (left--; left > 0 && factor < 200000000u; left--) {
            factor *= base;
        }
        multiply(limb, factor);
    }
    char all[DIGITS];
    for (int32_t i = 0; i < LIMBS; i++) {
        uint32_t rest = limb[LIMBS - 1 - i];
        for (int32_t j = LIMB_DIGITS - 1; j >= 0; j--) {
            all[i * LIMB_DIGITS + j] = (char)('0' + rest % 10u);
            rest /= 10u;
        }
    }
    int32_t zeros = 0;
    while (zeros < DIGITS && all[zeros] == '0') {
        zeros++;
    }
    d->count = DIGITS - zeros;
    d->point = d->count == 0 ? 1 : d->count + (exponent < 0 ? exponent : 0);
    memcpy(d->digit, all + zeros, (size_t)d->count);
}

/* Rounds to `keep` digits, ties to even; keep may be negative (all digits are after the rounding position).
 */
static void round_to(decimal *d, int32_t keep) {
    if (keep >= d->count) {
        return;
    }
    if (keep < 0) {
        d->count = 0;
        return;
    }
    int up = d->digit[keep] > '5';
    if (d->digit[keep] == '5') {
        up = keep > 0 && (d->digit[keep - 1] - '0') % 2 == 1;
        for (int32_t i = keep + 1; i < d->count; i++) {
            up |= d->digit[i] != '0';
        }
    }
    d->count = keep;
    for (int32_t i = keep - 1; up && i >= 0; i--) {
        up = d->digit[i] == '9';
        d->digit[i] = up ? '0' : (char)(d->digit[i] + 1);
    }
    if (up) { /* all nines: one more leading digit, which is 1 */
        memset(d->digit, '0', (size_t)keep + 1);
        d->digit[0] = '1';
        d->count = keep + 1;
        d->point++;
    }
}

static char digit_at(const decimal *d, int32_t i) {
    return i >= 0 && i < d->count ? d->digit[i] : '0';
}

/* Prints the sign, and infinities and NaN; the digits of other values are stored in `d`. Returns whether
 * digits remain to be printed after the sign. */
static bool begin(char **at, float x, decimal *d) {
    char *out = *at;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t exponent = (int32_t)((bits >> 23) & 255u);
    const uint32_t mantissa = bits & 0x7fffffu;
    if (bits >> 31 && (exponent != 255 || mantissa == 0)) {
        *out++ = '-';
    }
    if (exponent == 255) {
        memcpy(out, mantissa == 0 ? "inf" : "nan", 4);
        return false;
    }
    expand(d, exponent == 0 ? mantissa : mantissa | 0x800000u, exponent == 0 ? -149 : exponent - 150);
    *at = out;
    return true;
}

static int32_t clamp(int32_t decimals) {
    return decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

int32_t ag_format_f32(char *out, float x, int32_t decimals) {
    decimal d;
    char *p = out;
    if (!begin(&p, x, &d)) {
        return (int32_t)strlen(out);
    }
    decimals = clamp(decimals);
    round_to(&d, d.point + decimals);
    const int32_t whole = d.point > 1 ? d.point : 1; /* digits before the point */
    for (int32_t i = d.point - whole; i < d.point + decimals; i++) {
        if (i == d.point) {
            *p++ = '.';
        }
        *p++ = digit_at(&d, i);
    }
    *p = '\0';
    return (int32_t)(p - out);
}

int32_t ag_format_e32(char *out, float x, int32_t decimals) {
    decimal d;
    char *p = out;
    if (!begin(&p, x, &d)) {
        return (int32_t)strlen(out);
    }
    decimals = clamp(decimals);
    round_to(&d, decimals + 1);
    for (int32_t i = 0; i <= decimals; i++) {
        if (i == 1) {
            *p++ = '.';
        }
        *p++ = digit_at(&d, i);
    }
    int32_t power = d.point - 1;
    *p++ = 'e';
    *p++ = power < 0 ? '-' : '+';
    power = power < 0 ? -power : power;
    *p++ = (char)('0' + power / 10);
    *p++ = (char)('0' + power % 10);
    *p = '\0';
    return (int32_t)(p - out);
}
