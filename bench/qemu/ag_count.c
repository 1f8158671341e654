/* A TCG plugin that counts the instructions executed between markers, and the bytes of RAM written there.
 *
 *     qemu-system-arm ... -plugin libag_count.so,out=counts.txt[,profile=on]
 *
 * A marker is a hint instruction that no core acts on: Thumb-2 0xf3af8040+id begins region id, 0xf3af8080+id
 * ends it; A64 `hint #64+id` and `hint #96+id` (id < 32). Markers do not count themselves, regions may nest.
 * The file that it writes has lines
 *
 *     region <id> <times entered> <instructions in all>
 *     pc <address> <times executed inside any region>              (with profile=on)
 *
 * QEMU's plugin interface, version 1, is declared by hand: Debian ships no header for it. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_CB_NO_REGS = 0 };
typedef void (*tb_trans_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*insn_exec_fn)(unsigned int vcpu, void *data);
typedef void (*atexit_fn)(qemu_plugin_id_t id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_fn cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, insn_exec_fn cb, int flags,
                                            void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op, void *ptr,
                                                uint64_t imm);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, atexit_fn cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { REGIONS = 64 };

typedef struct {
    uint64_t times, total, start;
} region;

/* An instruction that profile=on counts. */
typedef struct place {
    uint64_t pc, times;
    struct place *next;
} place;

static region regions[REGIONS];
static uint64_t executed; /* instructions so far, markers left out */
static int open_regions;
static bool aarch64, profile;
static place *places[4096];
static char out_path[4096];

static void begin(unsigned int vcpu, void *data) {
    region *r = data;
    (void)vcpu;
    open_regions++;
    r->start = executed;
}

static void end(unsigned int vcpu, void *data) {
    region *r = data;
    (void)vcpu;
    open_regions--;
    r->total += executed - r->start;
    r->times++;
}

static void at_place(unsigned int vcpu, void *data) {
    (void)vcpu;
    if (open_regions > 0) {
        ((place *)data)->times++;
    }
}

/* The place of an address; translation blocks overlap, and are translated again. */
static place *place_of(uint64_t pc) {
    place **list = &places[(pc >> 1) % 4096];
    for (place *p = *list; p != NULL; p = p->next) {
        if (p->pc == pc) {
            return p;
        }
    }
    place *p = calloc(1, sizeof *p);
    if (p == NULL) {
        abort();
    }
    p->pc = pc;
    p->next = *list;
    return *list = p;
}

/* The region that an instruction begins (*ends false) or ends, or -1. */
static int marker(const struct qemu_plugin_insn *insn, bool *ends) {
    uint32_t word = 0, number;
    if (qemu_plugin_insn_size(insn) != 4) {
        return -1;
    }
    memcpy(&word, qemu_plugin_insn_data(insn), 4);
    if (aarch64) {
        number = (word >> 5 & 0x7f) - 64;
        *ends = number >= 32;
        return (word & 0xfffff01f) == 0xd503201f && number < 64 ? (int)(number % 32) : -1;
    }
    number = (word >> 16) - 0x8040;
    *ends = number >= 64;
    return (word & 0xffff) == 0xf3af && number < 128 ? (int)(number % 64) : -1;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        bool ends = false;
        int which = marker(insn, &ends);
        if (which >= 0) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, ends ? end : begin, QEMU_PLUGIN_CB_NO_REGS,
                                                   &regions[which]);
            continue;
        }
        qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &executed, 1);
        if (profile) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, at_place, QEMU_PLUGIN_CB_NO_REGS,
                                                   place_of(qemu_plugin_insn_vaddr(insn)));
        }
    }
}

static void finished(qemu_plugin_id_t id, void *data) {
    FILE *out = fopen(out_path, "w");
    (void)id, (void)data;
    if (out == NULL) {
        perror(out_path);
        return;
    }
    for (int i = 0; i < REGIONS; i++) {
        if (regions[i].times > 0) {
            fprintf(out, "region %d %" PRIu64 " %" PRIu64 "\n", i, regions[i].times, regions[i].total);
        }
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (place *p = places[i]; p != NULL; p = p->next) {
            if (p->times > 0) {
                fprintf(out, "pc 0x%" PRIx64 " %" PRIu64 "\n", p->pc, p->times);
            }
        }
    }
    fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                                               int argc, char **argv) {
    /* qemu_info_t begins with the target's name */
    aarch64 = strcmp(*(const char *const *)info, "aarch64") == 0;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0) {
            snprintf(out_path, sizeof out_path, "%s", argv[i] + 4);
        } else if (strcmp(argv[i], "profile=on") == 0) {
            profile = true;
        } else {
            fprintf(stderr, "ag_count: unknown argument %s; known: out=FILE, profile=on\n", argv[i]);
            return -1;
        }
    }
    if (out_path[0] == 0) {
        fprintf(stderr, "ag_count: out=FILE is missing\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
