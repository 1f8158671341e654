/* ag_math.h over arrays (for ctypes on the host) and as checksums of one sweep (the same on every core). */
#include "sweep.h"

#include "ag_math.h"

typedef float function(float x, float y);

#define UNARY(name)                                                                                          \
    static float name##_(float x, float y) {                                                                 \
        (void)y;                                                                                             \
        return ag_##name(x);                                                                                 \
    }
UNARY(expf)
UNARY(logf)
UNARY(expm1f)
UNARY(log1pf)
UNARY(tanhf)
UNARY(sigmoidf)
UNARY(sinf)
UNARY(cosf)
UNARY(erff)
UNARY(rintf)

static const struct {
    const char *name;
    function *f;
} functions[] = {{"expf", expf_},   {"logf", logf_},         {"expm1f", expm1f_}, {"log1pf", log1pf_},
                 {"tanhf", tanhf_}, {"sigmoidf", sigmoidf_}, {"sinf", sinf_},     {"cosf", cosf_},
                 {"erff", erff_},   {"rintf", rintf_},       {"powf", ag_powf},   {"atan2f", ag_atan2f}};

const char *sweep_name(int which) {
    return which < (int)(sizeof functions / sizeof *functions) ? functions[which].name : 0;
}

void sweep_map(int which, const float *x, const float *y, float *result, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        result[i] = functions[which].f(x[i], y[i]);
    }
}

/* CRC-32 of the results for n arguments: half of them random floats, half between -16 and 16 */
uint32_t sweep_crc(int which, uint32_t n) {
    uint32_t crc = 0xffffffffu;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t a = i * 0x9e3779b1u, b = (i ^ 0x5bd1e995u) * 0x85ebca6bu;
        const float x = i % 2u ? ag_bits_float(a) : (float)((int32_t)(a >> 8) - 8388608) * (1.0f / 524288.0f);
        const float y =
            i % 4u < 2u ? (float)((int32_t)(b >> 8) - 8388608) * (1.0f / 524288.0f) : ag_bits_float(b);
        crc ^= ag_float_bits(functions[which].f(i % 8u ? x : fabsf(x), y));
        for (int bit = 0; bit < 32; bit++) {
            crc = (crc >> 1) ^ (crc & 1u ? 0xedb88320u : 0u);
        }
    }
    return ~crc;
}
