/* A TCG plugin that counts the instructions executed between markers.
 *
 *     qemu-system-arm ... -plugin libag_count.so,out=counts.txt[,profile=on]
 *
 * A marker is a hint instruction that is a no-op on every core and is not counted itself. There are two
 * kinds:
 *
 *     region   begin and end, by number; regions may nest.            begin          end
 *              Thumb-2                                                0xf3af8040+id  0xf3af8080+id  (id < 64)
 *              A32                                                    0xe320f040+id  0xe320f080+id  (id < 64)
 *              A64                                                    hint #64+id    hint #96+id    (id < 31)
 *     probe    the instructions from here to the next probe are attributed to its address (runtime/ag_probe.h
 *              stores the meaning of each address in a section of the ELF file).
 *              Thumb-2 0xf3af80c0, A32 0xe320f0c0, A64 hint #127
 *
 * The output file has these lines:
 *
 *     region <id> <times entered> <total instructions>
 *     probe <address of a probe> <times executed> <total instructions>
 *     pc <address> <times executed inside any region>                            (with profile=on)
 *     at <address of a probe> <address> <times executed after it>                (with profile=on)
 *
 * QEMU's plugin interface is declared here, as Debian ships no header for it: version 1, and the functions of
 * version 2 (QEMU 9.0) that replace missing ones. */
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
struct qemu_plugin_scoreboard; /* an element of a plugin's own for each core */
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_CB_NO_REGS = 0 };
typedef void (*tb_trans_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*insn_exec_fn)(unsigned int vcpu, void *data);
typedef void (*atexit_fn)(qemu_plugin_id_t id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_fn cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, insn_exec_fn cb, int flags,
                                            void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op, void *ptr,
                                                uint64_t imm) __attribute__((weak));
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size) __attribute__((weak));
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu)
    __attribute__((weak));
typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int op,
                                                         qemu_plugin_u64 entry, uint64_t imm)
    __attribute__((weak));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, atexit_fn cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
/* Copies the bytes, and returns their number; before QEMU 9.1 it only returns their address. */
uintptr_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *copy, size_t bytes);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((constructor)) static void choose_version(void) {
    if (qemu_plugin_register_vcpu_insn_exec_inline == NULL) {
        qemu_plugin_version = 2;
    }
}

enum { REGIONS = 64, MAX_PROBES = 1024, BUCKETS = 4096 };

typedef struct {
    uint64_t times, total, start;
} region;

/* A probe; probes[0] is what precedes the first one. */
typedef struct {
    uint64_t pc, times, total;
} probe;

/* Instructions of one translation block that are executed together, as often as after[probe] and `inside`
 * say. */
typedef struct run {
    struct run *next;
    uint64_t inside; /* times executed inside any region */
    uint64_t *after; /* times executed after each probe; has `probes` entries */
    size_t probes, insns;
    uint64_t pcs[];
} run;

/* The counts of one address. */
typedef struct counter {
    uint64_t pc, inside, *after;
    struct counter *next;
} counter;

static region regions[REGIONS];
static probe probes[MAX_PROBES];
static size_t probe_count = 1, current;
static struct qemu_plugin_scoreboard *score; /* of *executed, in version 2 */
static uint64_t counted_inline;
/* instructions so far, without markers; the same at the last probe */
static uint64_t *executed = &counted_inline, executed_at_probe;
static int open_regions;
static bool aarch64, profile;
static run *runs;
static counter *counters[BUCKETS];
static char out_path[4096];

static void *check_alloc(void *memory) {
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void begin(unsigned int vcpu, void *data) {
    region *r = data;
    (void)vcpu;
    open_regions++;
    r->start = *executed;
}

static void end(unsigned int vcpu, void *data) {
    region *r = data;
    (void)vcpu;
    open_regions--;
    r->total += *executed - r->start;
    r->times++;
}

static void attribute(void) {
    probes[current].total += *executed - executed_at_probe;
    executed_at_probe = *executed;
}

static void enter_probe(unsigned int vcpu, void *data) {
    probe *m = data;
    (void)vcpu;
    attribute();
    m->times++;
    current = (size_t)(m - probes);
}

static void enter_run(unsigned int vcpu, void *data) {
    run *r = data;
    (void)vcpu;
    r->inside += open_regions > 0;
    if (current >= r->probes) {
        r->after = check_alloc(realloc(r->after, probe_count * sizeof *r->after));
        memset(r->after + r->probes, 0, (probe_count - r->probes) * sizeof *r->after);
        r->probes = probe_count;
    }
    r->after[current]++;
}

/* The probe at an address; blocks overlap, and are translated again. */
static probe *probe_at(uint64_t pc) {
    for (size_t i = 1; i < probe_count; i++) {
        if (probes[i].pc == pc) {
            return &probes[i];
        }
    }
    if (probe_count == MAX_PROBES) {
        fprintf(stderr, "ag_count: more than %d probes\n", MAX_PROBES - 1);
        abort();
    }
    probes[probe_count].pc = pc;
    return &probes[probe_count++];
}

static counter *counter_of(uint64_t pc) {
    counter **list = &counters[(pc >> 1) % BUCKETS];
    for (counter *p = *list; p != NULL; p = p->next) {
        if (p->pc == pc) {
            return p;
        }
    }
    counter *p = check_alloc(calloc(1, sizeof *p));
    p->pc = pc;
    p->after = check_alloc(calloc(probe_count, sizeof *p->after));
    p->next = *list;
    return *list = p;
}

enum { NONE = -1, PROBE = -2 };

/* The region that an instruction begins (*ends false) or ends, PROBE for a probe, NONE for any other. */
static int marker(const struct qemu_plugin_insn *insn, bool *ends) {
    uint32_t word = 0, hint;
    if (qemu_plugin_insn_size(insn) < 4) {
        return NONE; /* 6 bytes are a marker too: before the end of a page QEMU has read a halfword more */
    }
    const uintptr_t data = qemu_plugin_insn_data(insn, &word, 4);
    if (data > 4) {
        memcpy(&word, (const void *)data, 4);
    }
    if (aarch64) {
        hint = word >> 5 & 0x7f;
        if ((word & 0xfffff01f) != 0xd503201f || hint < 64) {
            return NONE;
        }
        *ends = hint >= 96;
        return hint == 127 ? PROBE : (int)(hint % 32);
    }
    if ((word & 0xffffff00) == 0xe320f000) { /* A32 */
        hint = word & 0xff;
    } else if ((word & 0xff00ffff) == 0x8000f3af) { /* Thumb-2, two little-endian halfwords */
        hint = word >> 16 & 0xff;
    } else {
        return NONE;
    }
    *ends = hint >= 128;
    return hint == 192 ? PROBE : hint >= 64 && hint < 192 ? (int)(hint % 64) : NONE;
}

/* Instructions first..last-1 of a block, between markers, are executed as often as the first of them. */
static void count_run(struct qemu_plugin_tb *tb, size_t first, size_t last) {
    if (!profile || first == last) {
        return;
    }
    run *r = check_alloc(calloc(1, sizeof *r + (last - first) * sizeof *r->pcs));
    r->insns = last - first;
    for (size_t i = first; i < last; i++) {
        r->pcs[i - first] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
    }
    r->next = runs;
    runs = r;
    qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, first), enter_run,
                                           QEMU_PLUGIN_CB_NO_REGS, r);
}

static void count_inline(struct qemu_plugin_insn *insn) {
    if (score == NULL) {
        qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, executed, 1);
    } else {
        const qemu_plugin_u64 entry = {score, 0};
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry, 1);
    }
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    const size_t count = qemu_plugin_tb_n_insns(tb);
    size_t first = 0;
    (void)id;
    if (score != NULL) {
        executed = qemu_plugin_scoreboard_find(score, 0); /* elements move where a core is added */
    }
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        bool ends = false;
        const int which = marker(insn, &ends);
        if (which == NONE) {
            count_inline(insn);
            continue;
        }
        if (which == PROBE) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, enter_probe, QEMU_PLUGIN_CB_NO_REGS,
                                                   probe_at(qemu_plugin_insn_vaddr(insn)));
        } else {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, ends ? end : begin, QEMU_PLUGIN_CB_NO_REGS,
                                                   &regions[which]);
        }
        count_run(tb, first, i);
        first = i + 1;
    }
    count_run(tb, first, count);
}

static void sum_runs(void) {
    for (const run *r = runs; r != NULL; r = r->next) {
        for (size_t i = 0; i < r->insns; i++) {
            counter *p = counter_of(r->pcs[i]);
            p->inside += r->inside;
            for (size_t k = 0; k < r->probes; k++) {
                p->after[k] += r->after[k];
            }
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
    attribute();
    for (size_t k = 1; k < probe_count; k++) {
        fprintf(out, "probe 0x%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", probes[k].pc, probes[k].times,
                probes[k].total);
    }
    sum_runs();
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const counter *p = counters[i]; p != NULL; p = p->next) {
            if (p->inside > 0) {
                fprintf(out, "pc 0x%" PRIx64 " %" PRIu64 "\n", p->pc, p->inside);
            }
            for (size_t k = 1; k < probe_count; k++) {
                if (p->after[k] > 0) {
                    fprintf(out, "at 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64 "\n", probes[k].pc, p->pc,
                            p->after[k]);
                }
            }
        }
    }
    fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                                               int argc, char **argv) {
    /* the first member of qemu_info_t is the target's name */
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
    if (qemu_plugin_version == 2) {
        score = qemu_plugin_scoreboard_new(sizeof *executed);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
