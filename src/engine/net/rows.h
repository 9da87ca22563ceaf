/* rows.h: one member's way through a step, and who holds which rows of what is computed.
 *
 * All members of a team walk the same blocks in the same order, each in a lane of its own. What flows
 * between blocks is `rows`, a matrix in memory that all share. Each lane remembers how it was last used:
 *
 *     mine       every member wrote the rows that member_share (grain 1) gives it: it may read them back at
 *                once, others' rows only behind a barrier
 *     parts      members wrote columns, or whatever else a block splits: nobody reads before a barrier
 *     whole      a barrier has passed since: anyone reads anything
 *
 * and a few rows, fewer than members, may be computed by each member for itself instead: these are `own`,
 * each member has them in memory of its own, and nobody ever waits for them. One token's norm takes a tenth
 * of the time of a barrier, and no member has anything else to do meanwhile.
 *
 * A block says what it is about to do and the lane puts a barrier in front when, and only when, one is
 * needed. So a block owns its barriers, no two blocks have a contract between them, and a missing or a
 * needless barrier cannot be written. Every lane comes to the same verdict, since it depends on the order of
 * blocks alone. Say all at once what one loop does; what comes behind another barrier, say again.
 *
 *     rows_use(l, {x, READ_MINE}, {y, WRITE_MINE});
 *     rows_share(l, x, &t, &end);
 *     for (; t < end; t++) norm_row(norm, l->v, rows_at(y, t), rows_at(x, t)); */
#ifndef NET_ROWS_H
#define NET_ROWS_H

#include "compute/compute.h"
#include "compute/profile.h"
#include "model/adapter.h"

typedef struct rows {
    float *at;       /* [n][width], shared */
    size_t n, width; /* width is also the stride */
    /* This lane's notes: the barriers that had passed at the last write and read, 0 for never; and how. */
    unsigned written, read;
    bool in_parts, read_all;
    bool own; /* this lane's alone: all its rows, whatever the others do */
} rows;

enum { FEW_ROWS = 4 }; /* more are not computed by every member */
enum { THIN_ROWS = 4, THIN_WIDTH = 3 * ADAPTER_RANK_MAX };

typedef struct lane {
    team_member *m;
    const vec_kernels *v;
    profile *profile;  /* of member 0 where one is taken; NULL: nothing is said */
    acts *acts;        /* what rows_load loads */
    acts *own;         /* or a few rows into, up to own_cols wide: this member's alone; NULL: there is none */
    acts *window;      /* this member's, on its own rows among many; NULL: there is none */
    size_t apart_rows; /* for each member: so many are many */
    const acts *loaded; /* where the last load is */
    size_t own_cols;
    unsigned barriers;                /* passed in this step, from 1 */
    unsigned acts_read;               /* by all members */
    unsigned window_used;             /* by each its own rows, */
    size_t window_rows, window_first; /* of so many; this member's begin here */
    size_t acts_cols;                 /* of what is loaded */
    /* By row of what is multiplied: its adapter, or NULL; NULL when no row of the step has one. The same for
     * all members. */
    const adapter *const *adapters;
    float *thin;   /* of blk_linear: A x of a few rows, THIN_ROWS * THIN_WIDTH, shared; NULL: there is none */
    rows thin_use; /* notes about it */
} lane;

enum { READ_MINE = 1, READ_ALL = 2, WRITE_MINE = 4, WRITE_PARTS = 8 };
typedef struct rows_need {
    rows *r;
    unsigned how; /* one or more of the above */
} rows_need;

void rows_open(lane *l, team_member *m, acts *a);
void rows_needs(lane *l, const rows_need *uses, size_t n);
#define rows_use(l, ...)                              \
    rows_needs((l), (const rows_need[]){__VA_ARGS__}, \
               sizeof((const rows_need[]){__VA_ARGS__}) / sizeof(rows_need))

/* Are n rows so few that each member had better compute all of them? */
static inline bool rows_are_few(const lane *l, size_t n)
{
    return n <= FEW_ROWS && n < (size_t)member_count(l->m);
}
/* Are n rows so many that each member had better do everything with its own, products, too? What it reads it
 * wrote itself then, and nobody waits; but every member reads all weights. */
static inline bool rows_stand_apart(const lane *l, size_t n)
{
    return l->window && n >= l->apart_rows * (size_t)member_count(l->m);
}
/* This member's rows [*begin, *end) of r. */
static inline void rows_share(const lane *l, const rows *r, size_t *begin, size_t *end)
{
    member_share(r->own ? member_alone(l->m) : l->m, r->n, 1, begin, end);
}
static inline float *rows_at(const rows *r, size_t t)
{
    return r->at + t * r->width;
}
/* The same memory as `width` columns of n rows; nothing is in flight in it. */
static inline rows rows_of(float *at, size_t n, size_t width)
{
    return (rows){.at = at, .n = n, .width = width};
}

/* The same of this member's own. */
static inline rows rows_own(float *at, size_t n, size_t width)
{
    return (rows){.at = at, .n = n, .width = width, .own = true};
}

/* The operation that follows. */
static inline void rows_profile(const lane *l, profile_op op)
{
    if (l->profile) profile_to(l->profile, op, NULL);
}

/* One that goes on. */
static inline void rows_profile_back(const lane *l, profile_op op)
{
    if (l->profile) profile_back_to(l->profile, op, NULL);
}

/* Load x as weights of type t want it. Ends in a barrier, or each member loads its own few rows without. */
void rows_load(lane *l, dtype t, rows *x);
/* Each member its own rows of many, without a barrier; x is shared. */
void rows_load_apart(lane *l, dtype t, rows *x);
/* Columns [first, first + w's rows) of y = what was loaded · wᵀ + bias, or +=. The loader of x has said
 * WRITE_PARTS of y, behind rows_load_apart WRITE_MINE. */
void rows_mul(lane *l, const wmat *w, rows *y, size_t first, bool add);
/* The same for rows [row, row + n) alone, those of one expert. */
void rows_mul_some(lane *l, const wmat *w, size_t row, size_t n, rows *y, size_t first);

#endif
