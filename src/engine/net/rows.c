/* rows.c: where a barrier stands; see rows.h. */
#include "net/rows.h"

#include <assert.h>

void rows_open(lane *l, team_member *m, acts *a)
{
    *l = (lane){.m = m, .v = member_vec(m), .profile = member_profile(m), .acts = a, .barriers = 1};
}

/* Must a barrier pass first? Only what happened since the last one matters. */
static bool clashes(const lane *l, rows_need u)
{
    if (u.r->own) return false;
    bool written = u.r->written == l->barriers, torn = written && u.r->in_parts;
    bool read = u.r->read == l->barriers, read_all = read && u.r->read_all;
    return ((u.how & READ_MINE) && torn) || ((u.how & READ_ALL) && written) ||
           ((u.how & WRITE_MINE) && (torn || read_all)) || ((u.how & WRITE_PARTS) && (written || read));
}

static void note(const lane *l, rows_need u)
{
    rows *r = u.r;
    if (u.how & (READ_MINE | READ_ALL)) {
        bool before = r->read == l->barriers && r->read_all;
        r->read_all = before || (u.how & READ_ALL);
        r->read = l->barriers;
    }
    if (u.how & (WRITE_MINE | WRITE_PARTS)) {
        r->in_parts = u.how & WRITE_PARTS;
        r->written = l->barriers;
    }
}

void rows_needs(lane *l, const rows_need *uses, size_t n)
{
    bool wait = false;
    for (size_t i = 0; i < n; i++) wait = wait || clashes(l, uses[i]);
    if (wait) {
        team_barrier(l->m);
        l->barriers++;
    }
    for (size_t i = 0; i < n; i++) note(l, uses[i]);
}

static void load_own(lane *l, dtype t, rows *x)
{
    rows_use(l, {x, READ_ALL});
    acts_load(member_alone(l->m), l->own, t, x->at, x->n, x->width, x->width);
    l->loaded = l->own;
    l->acts_cols = x->width;
}

/* One entry for each type; dtype names are static. */
static void profile_load(const lane *l, dtype t)
{
    if (l->profile && !dtype_is_float(t)) profile_to(l->profile, PROFILE_QUANTISE, dtype_name(t))->type = t;
}

void rows_load(lane *l, dtype t, rows *x)
{
    profile_load(l, t);
    if (l->own && rows_are_few(l, x->n) && x->width <= l->own_cols) {
        load_own(l, t, x);
        return;
    }
    assert(!x->own);
    bool torn = x->written == l->barriers && x->in_parts;
    if (torn || l->acts_read == l->barriers || l->window_used == l->barriers) {
        team_barrier(l->m);
        l->barriers++;
    }
    acts_load(l->m, l->acts, t, x->at, x->n, x->width, x->width);
    l->barriers++; /* acts_load ends in one */
    l->loaded = l->acts;
    l->acts_cols = x->width;
    /* Float activations are x itself, which all members read from now on. */
    if (dtype_block(t) == 1) note(l, (rows_need){x, READ_ALL});
}

/* Windows of members meet when they were aimed at shares of another number of rows. */
static bool windows_meet(const lane *l, size_t n)
{
    return l->window_used == l->barriers && l->window_rows != n;
}

void rows_load_apart(lane *l, dtype t, rows *x)
{
    size_t end;
    assert(!x->own && l->window);
    profile_load(l, t);
    rows_use(l, {x, READ_MINE});
    if (l->acts_read == l->barriers || windows_meet(l, x->n)) {
        team_barrier(l->m);
        l->barriers++;
        note(l, (rows_need){x, READ_MINE});
    }
    l->window_used = l->barriers;
    l->window_rows = x->n;
    rows_share(l, x, &l->window_first, &end);
    acts_aim(l->window, l->acts, l->window_first);
    acts_load(member_alone(l->m), l->window, t, rows_at(x, l->window_first), end - l->window_first, x->width,
              x->width);
    l->loaded = l->window;
    l->acts_cols = x->width;
}

/* Its WRITE_PARTS, or WRITE_MINE of what stands apart, is behind the load. */
static void check_mul(const lane *l, const wmat *w, const rows *y, size_t first)
{
    assert(first + wmat_rows(w) <= y->width && wmat_cols(w) == l->acts_cols);
    assert(y->written == l->barriers && y->in_parts == (l->loaded != l->window));
    (void)l, (void)w, (void)y, (void)first;
}

void rows_mul(lane *l, const wmat *w, rows *y, size_t first, bool add)
{
    check_mul(l, w, y, first);
    if (l->loaded == l->window) {
        acts_mul(member_alone(l->m), l->window, w, rows_at(y, l->window_first) + first, y->width, add);
        return;
    }
    acts_mul(l->m, l->loaded, w, y->at + first, y->width, add);
    if (l->loaded == l->acts) l->acts_read = l->barriers;
}

void rows_mul_some(lane *l, const wmat *w, size_t row, size_t n, rows *y, size_t first)
{
    check_mul(l, w, y, first);
    acts_mul_rows(l->m, l->loaded, row, n, w, y->at + first, y->width);
    if (l->loaded == l->acts) l->acts_read = l->barriers;
}
