/* A TCG plugin that counts the instructions executed between markers.
 *
 *     qemu-system-arm ... -plugin libag_count.so,out=counts.txt[,profile=on]
 *
 * A marker is a hint instruction that no core acts on, and does not count itself. There are two kinds:
 *
 *     region   begin and end, by number; regions may nest.            begin          end
 *              Thumb-2                                                0xf3af8040+id  0xf3af8080+id  (id < 64)
 *              A32                                                    0xe320f040+id  0xe320f080+id  (id < 64)
 *              A64                                                    hint #64+id    hint #96+id    (id < 31)
 *     place    what is executed from here to the next place marker belongs to this address (runtime/ag_mark.h
 *              says in a section of the ELF file what each address stands for).
 *              Thumb-2 0xf3af80c0, A32 0xe320f0c0, A64 hint #127
 *
 * The file that it writes has lines
 *
 *     region <id> <times entered> <instructions in all>
 *     mark <address of a place marker> <times passed> <instructions in all>
 *     pc <address> <times executed inside any region>                            (with profile=on)
 *     at <address of a place marker> <address> <times executed behind it>        (with profile=on)
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

enum { REGIONS = 64, MARKS = 1024, BUCKETS = 4096 };

typedef struct {
    uint64_t times, total, start;
} region;

/* A place marker; marks[0] stands for what comes before the first. */
typedef struct {
    uint64_t pc, times, total;
} mark;

/* Instructions of one translation that are executed together, as often as behind[mark] and `inside` say. */
typedef struct run {
    struct run *next;
    uint64_t inside;  /* times executed inside any region */
    uint64_t *behind; /* times executed behind each mark; as many as `known` when it was last made longer */
    size_t marks, insns;
    uint64_t pcs[];
} run;

/* The counts of one address. */
typedef struct place {
    uint64_t pc, inside, *behind;
    struct place *next;
} place;

static region regions[REGIONS];
static mark marks[MARKS];
static size_t known = 1, current;
static uint64_t executed,
    since; /* instructions so far, markers left out; the same at the last place marker */
static int open_regions;
static bool aarch64, profile;
static run *runs;
static place *places[BUCKETS];
static char out_path[4096];

static void *made(void *memory) {
    if (memory == NULL) {
        abort();
    }
    return memory;
}

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

static void settle(void) {
    marks[current].total += executed - since;
    since = executed;
}

static void pass(unsigned int vcpu, void *data) {
    mark *m = data;
    (void)vcpu;
    settle();
    m->times++;
    current = (size_t)(m - marks);
}

static void enter_run(unsigned int vcpu, void *data) {
    run *r = data;
    (void)vcpu;
    r->inside += open_regions > 0;
    if (current >= r->marks) {
        r->behind = made(realloc(r->behind, known * sizeof *r->behind));
        memset(r->behind + r->marks, 0, (known - r->marks) * sizeof *r->behind);
        r->marks = known;
    }
    r->behind[current]++;
}

/* The marker at an address; blocks overlap, and are translated again. */
static mark *mark_at(uint64_t pc) {
    for (size_t i = 1; i < known; i++) {
        if (marks[i].pc == pc) {
            return &marks[i];
        }
    }
    if (known == MARKS) {
        fprintf(stderr, "ag_count: more than %d place markers\n", MARKS - 1);
        abort();
    }
    marks[known].pc = pc;
    return &marks[known++];
}

static place *place_of(uint64_t pc) {
    place **list = &places[(pc >> 1) % BUCKETS];
    for (place *p = *list; p != NULL; p = p->next) {
        if (p->pc == pc) {
            return p;
        }
    }
    place *p = made(calloc(1, sizeof *p));
    p->pc = pc;
    p->behind = made(calloc(known, sizeof *p->behind));
    p->next = *list;
    return *list = p;
}

enum { NONE = -1, PLACE = -2 };

/* The region that an instruction begins (*ends false) or ends, PLACE for a place marker, NONE for any other.
 */
static int marker(const struct qemu_plugin_insn *insn, bool *ends) {
    uint32_t word = 0, hint;
    if (qemu_plugin_insn_size(insn) != 4) {
        return NONE;
    }
    memcpy(&word, qemu_plugin_insn_data(insn), 4);
    if (aarch64) {
        hint = word >> 5 & 0x7f;
        if ((word & 0xfffff01f) != 0xd503201f || hint < 64) {
            return NONE;
        }
        *ends = hint >= 96;
        return hint == 127 ? PLACE : (int)(hint % 32);
    }
    if ((word & 0xffffff00) == 0xe320f000) { /* A32 */
        hint = word & 0xff;
    } else if ((word & 0xff00ffff) == 0x8000f3af) { /* Thumb-2, its halves in the order of the bytes */
        hint = word >> 16 & 0xff;
    } else {
        return NONE;
    }
    *ends = hint >= 128;
    return hint == 192 ? PLACE : hint >= 64 && hint < 192 ? (int)(hint % 64) : NONE;
}

/* The instructions first..last-1 of a block, between markers, are executed as often as the first of them. */
static void watch(struct qemu_plugin_tb *tb, size_t first, size_t last) {
    if (!profile || first == last) {
        return;
    }
    run *r = made(calloc(1, sizeof *r + (last - first) * sizeof *r->pcs));
    r->insns = last - first;
    for (size_t i = first; i < last; i++) {
        r->pcs[i - first] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
    }
    r->next = runs;
    runs = r;
    qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, first), enter_run,
                                           QEMU_PLUGIN_CB_NO_REGS, r);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    const size_t count = qemu_plugin_tb_n_insns(tb);
    size_t first = 0;
    (void)id;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        bool ends = false;
        const int which = marker(insn, &ends);
        if (which == NONE) {
            qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &executed, 1);
            continue;
        }
        if (which == PLACE) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, pass, QEMU_PLUGIN_CB_NO_REGS,
                                                   mark_at(qemu_plugin_insn_vaddr(insn)));
        } else {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, ends ? end : begin, QEMU_PLUGIN_CB_NO_REGS,
                                                   &regions[which]);
        }
        watch(tb, first, i);
        first = i + 1;
    }
    watch(tb, first, count);
}

static void add_up(void) {
    for (const run *r = runs; r != NULL; r = r->next) {
        for (size_t i = 0; i < r->insns; i++) {
            place *p = place_of(r->pcs[i]);
            p->inside += r->inside;
            for (size_t k = 0; k < r->marks; k++) {
                p->behind[k] += r->behind[k];
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
    settle();
    for (size_t k = 1; k < known; k++) {
        fprintf(out, "mark 0x%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", marks[k].pc, marks[k].times,
                marks[k].total);
    }
    add_up();
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const place *p = places[i]; p != NULL; p = p->next) {
            if (p->inside > 0) {
                fprintf(out, "pc 0x%" PRIx64 " %" PRIu64 "\n", p->pc, p->inside);
            }
            for (size_t k = 1; k < known; k++) {
                if (p->behind[k] > 0) {
                    fprintf(out, "at 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64 "\n", marks[k].pc, p->pc,
                            p->behind[k]);
                }
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
