/* The gradients of sum(tanh(A . B)) for matrices that are easy to generate in any program. */
#include "tanh_matmul.h"

#include "ag_console.h"
#include "ag_main.h"
#include "ag_math.h"

enum { M = 5, K = 4, N = 8 };

static tanh_matmul_work work;

static void print_row(const char *name, const float *row, int32_t count) {
    ag_print_left(name, 14);
    for (int32_t i = 0; i < count; i++) {
        ag_print_f32(row[i], 11, 6);
    }
    ag_print("\n");
}

int main(void) {
    float a[M][K], b[K][N], da[M][K], db[K][N], loss;
    for (int32_t i = 0; i < M; i++) {
        for (int32_t j = 0; j < K; j++) {
            a[i][j] = ag_sinf(0.1f * (float)(i * j) + 1.0f);
        }
    }
    for (int32_t i = 0; i < K; i++) {
        for (int32_t j = 0; j < N; j++) {
            b[i][j] = ag_cosf(0.2f * (float)i - 0.3f * (float)j + 2.0f);
        }
    }
    const int status = tanh_matmul_step(&work, a[0], b[0], &loss, da[0], db[0]);
    ag_require("step", status, tanh_matmul_strstatus(status));

    ag_print("tanh_matmul on ");
    ag_print(ag_board_name());
    ag_print(": sum(tanh(A . B)) of A[5,4] and B[4,8]\n\n");
    print_row("loss", &loss, 1);
    print_row("dA, row 0", da[0], K);
    print_row("dB, row 0", db[0], N);
    ag_print_memory();
    return 0;
}
