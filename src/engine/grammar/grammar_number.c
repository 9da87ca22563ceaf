/* grammar_number.c: bounds to digits.
 *
 * A number's digits are read from the left beside those of a bound. As long as all were equal the relation
 * is EQUAL and the next digits decide; after that it stays. Numbers of different lengths need no digits: the
 * fsm first guesses how many digits stand before the point, which fixes the relation for all other lengths.
 * A state is therefore (digits left before the point or digits read behind it, relation to the lower and to
 * the upper bound, remainder modulo the multiple). */
#include "grammar/grammar_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LESS, EQUAL, MORE };
#define HUGE_INT INT64_C(1000000000000000000)

bool decimal_of(const json_t *number, decimal *ret, bool *ret_huge)
{
    char text[64], digits[64] = "";
    *ret = (decimal){.negative = json_number_value(number) < 0};
    json_int_t n_int = json_integer_value(number);
    *ret_huge = json_is_integer(number) ? n_int >= HUGE_INT || n_int <= -HUGE_INT
                                        : fabs(json_number_value(number)) >= 1e18;
    if (*ret_huge) return true;
    if (json_is_integer(number)) {
        snprintf(text, sizeof text, "%llde0", (long long)json_integer_value(number));
    } else { /* the shortest text that is this double, which is what stood in the schema */
        for (int digits_n = 0; digits_n < 17; digits_n++) {
            snprintf(text, sizeof text, "%.*e", digits_n, json_real_value(number));
            if (strtod(text, NULL) == json_real_value(number)) break;
        }
    }
    int n = 0, point = -1, exponent = 0;
    for (const char *p = text; *p; p++) {
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
        if (*p == '.') point = n;
        if (*p != 'e') continue;
        exponent = atoi(p + 1);
        break;
    }
    if (point < 0) point = n;
    point += exponent; /* where it stands among the digits: may be before the first or behind the last */
    int lead = 0;
    while (n > 0 && n > point && digits[n - 1] == '0') n--;
    while (lead < n && lead < point && digits[lead] == '0') lead++;
    ret->n_int = point > lead ? point - lead : 0;
    ret->n_frac = n > point ? n - point : 0;
    if (n == 0) ret->n_frac = 0;
    if (ret->n_int > DECIMAL_INT_MAX || ret->n_frac > NUMBER_DIGITS) return false;
    for (int i = 0; i < ret->n_int + ret->n_frac; i++) {
        int at = point - ret->n_int + i;
        ret->digits[i] = at >= 0 && at < n ? digits[at] : '0';
    }
    return true;
}

static char digit_of(const decimal *d, int place) /* 0 is the first behind the point, -1 the last before it */
{
    int i = d->n_int + place;
    return i >= 0 && i < d->n_int + d->n_frac ? d->digits[i] : '0';
}

static int compare_magnitudes(const decimal *a, const decimal *b)
{
    int n_int = a->n_int > b->n_int ? a->n_int : b->n_int,
        n_frac = a->n_frac > b->n_frac ? a->n_frac : b->n_frac;
    for (int place = -n_int; place < n_frac; place++) {
        int c = digit_of(a, place) - digit_of(b, place);
        if (c != 0) return c;
    }
    return 0;
}

int decimal_compare(const decimal *a, const decimal *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    return a->negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

bool number_multiple(const json_t *number, int *ret_multiple, int *ret_frac)
{
    decimal d;
    bool huge;
    if (json_number_value(number) <= 0 || !decimal_of(number, &d, &huge) || huge) return false;
    int64_t all = 0;
    for (int i = 0; i < d.n_int + d.n_frac; i++)
        if (__builtin_mul_overflow(all, 10, &all) || __builtin_add_overflow(all, d.digits[i] - '0', &all))
            return false;
    *ret_multiple = (int)all;
    *ret_frac = d.n_frac;
    return all > 0 && all <= MULTIPLE_MAX;
}

/* ---- the fsm ---------------------------------------------------------------------------------- */

/* Magnitudes: between two bounds that are not negative, either of which may be missing. */
typedef struct magnitudes {
    fsm *f;
    const decimal *lo, *hi; /* NULL: none */
    bool above_lo, below_hi;
    int int_max, frac_max; /* digits */
    int modulus, frac_of_modulus;
    int *ids; /* of the states + 1, by place, relations, remainder; 0: not made */
} magnitudes;

/* What a state knows. place < 0: that many digits are still to come before the point; place 0: all are read;
 * place j > 0: j digits behind the point were read. */
typedef struct spot {
    int place, lo, hi, rest;
} spot;

static size_t spot_index(const magnitudes *m, spot s)
{
    size_t i = (size_t)(s.place + m->int_max);
    return ((i * 3 + (size_t)s.lo) * 3 + (size_t)s.hi) * (size_t)m->modulus + (size_t)s.rest;
}

static int relation(int before, int digit, const decimal *bound, int place)
{
    int c = digit + '0' - (bound ? digit_of(bound, place) : '0');
    if (!bound || before != EQUAL || c == 0) return before;
    return c < 0 ? LESS : MORE;
}

/* EQUAL so far; what the bound still has decides. */
static int settled(int before, const decimal *bound, int n_frac_read)
{
    for (int i = n_frac_read; bound && before == EQUAL && i < bound->n_frac; i++)
        if (digit_of(bound, i) != '0') return LESS;
    return before;
}

static bool is_member(const magnitudes *m, spot s)
{
    int read = s.place > 0 ? s.place : 0;
    int lo = settled(s.lo, m->lo, read), hi = settled(s.hi, m->hi, read);
    if (m->lo && (lo == LESS || (lo == EQUAL && m->above_lo))) return false;
    if (m->hi && (hi == MORE || (hi == EQUAL && m->below_hi))) return false;
    int rest = s.rest;
    for (int i = read; i < m->frac_of_modulus; i++) rest = rest * 10 % m->modulus;
    return rest == 0;
}

/* A number that is too large already stays so; one that is too small may grow no more once its length is
 * fixed. Both lead nowhere. */
static bool is_lost(const magnitudes *m, spot s)
{
    return (m->lo && s.lo == LESS) || (m->hi && s.hi == MORE);
}

static int spot_state(magnitudes *m, spot s);

static void read_digits(magnitudes *m, spot s, int from, int least)
{
    for (int d = least; d <= 9; d++) {
        int place = s.place; /* of the digit: -1 is the last before the point, 0 the first behind it */
        spot to = {.place = s.place + 1,
                   .lo = relation(s.lo, d, m->lo, place),
                   .hi = relation(s.hi, d, m->hi, place),
                   .rest = (s.rest * 10 + d) % m->modulus};
        if (!is_lost(m, to))
            fsm_range(m->f, from, (uint32_t)('0' + d), (uint32_t)('0' + d), spot_state(m, to));
    }
}

/* The state of a spot, with all that follows; at most some thirty calls deep. */
static int spot_state(magnitudes *m, spot s)
{
    int *id = &m->ids[spot_index(m, s)];
    if (*id) return *id - 1;
    int state = fsm_state(m->f);
    *id = state + 1;
    if (s.place < 0) {
        read_digits(m, s, state, 0);
        return state;
    }
    if (is_member(m, s)) fsm_accept(m->f, state);
    if (s.place >= m->frac_max) return state;
    int at = state;
    if (s.place == 0) {
        at = fsm_state(m->f);
        fsm_range(m->f, state, '.', '.', at);
    }
    read_digits(m, s, at, 0);
    return state;
}

static int whole_length(const decimal *bound)
{
    return bound && bound->n_int > 0 ? bound->n_int : 1; /* 0.5 is written with one digit before the point */
}

static int length_relation(int n, const decimal *bound)
{
    int have = whole_length(bound);
    return !bound ? EQUAL : n < have ? LESS : n > have ? MORE : EQUAL;
}

/* Numbers of n digits before the point; the first is no 0 unless it is the only one. */
static void of_length(magnitudes *m, int from, int n)
{
    spot s = {.place = -n, .lo = length_relation(n, m->lo), .hi = length_relation(n, m->hi)};
    if (is_lost(m, s)) return;
    int start = fsm_state(m->f);
    fsm_jump(m->f, from, FSM_ALWAYS, start);
    read_digits(m, s, start, n > 1 ? 1 : 0);
}

/* Of first to int_max digits before the point. */
static int write_magnitudes(magnitudes *m, int from, int first, shoal_err *err)
{
    size_t n = (size_t)(m->int_max + m->frac_max + 2) * 9 * (size_t)m->modulus;
    m->ids = calloc(n, sizeof *m->ids);
    if (!m->ids) return err_nomem(err);
    for (int length = first; length <= m->int_max; length++) of_length(m, from, length);
    free(m->ids);
    return 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* The most digits before the point: what the bounds ask for, or all that there are. Remainders make many states. */
static int choose_length(const number_bounds *b)
{
    int need = larger(b->has_min ? whole_length(&b->min) : 1, b->has_max ? whole_length(&b->max) : 1);
    int most = b->multiple > 100 ? 9 : b->integer ? DECIMAL_INT_MAX : NUMBER_DIGITS;
    return b->has_min && b->has_max ? need : larger(most, need);
}

/* The more digits stand before the point, the fewer may stand behind it. */
static int write_lengths(magnitudes *m, const number_bounds *b, int from, shoal_err *err)
{
    static const int ends[] = {9, 12, 14, DECIMAL_INT_MAX};
    int last = 0, rc = 0, most = choose_length(b);
    m->modulus = b->multiple ? b->multiple : 1;
    m->frac_of_modulus = b->multiple ? b->multiple_frac : 0;
    for (size_t i = 0; rc == 0 && last < most; i++) {
        int first = last + 1;
        last = b->integer || ends[i] > most ? most : ends[i];
        m->int_max = last;
        m->frac_max = b->integer || last >= NUMBER_DIGITS ? 0 : NUMBER_DIGITS - last;
        if (b->multiple && m->frac_max > b->multiple_frac) m->frac_max = b->multiple_frac;
        rc = write_magnitudes(m, from, first, err);
    }
    return rc;
}

/* The numbers without a sign, resp. what follows the sign of those below zero. */
static int write_side(fsm *f, const number_bounds *b, bool below_zero, int from, shoal_err *err)
{
    static const decimal zero;
    magnitudes m = {.f = f};
    if (below_zero) {
        if (b->has_min && !b->min.negative) return 0;
        bool bounded = b->has_max && b->max.negative;
        m.lo = bounded ? &b->max : &zero;
        m.above_lo = bounded ? b->below_max : true;
        m.hi = b->has_min ? &b->min : NULL;
        m.below_hi = b->above_min;
    } else {
        if (b->has_max && b->max.negative) return 0;
        m.lo = b->has_min && !b->min.negative ? &b->min : NULL;
        m.above_lo = b->above_min;
        m.hi = b->has_max ? &b->max : NULL;
        m.below_hi = b->below_max;
    }
    return write_lengths(&m, b, from, err);
}

int number_compile(dfa **ret, const number_bounds *b, uint64_t *work, shoal_err *err)
{
    fsm *f = fsm_new();
    if (!f) return err_nomem(err);
    int minus = fsm_state(f);
    fsm_range(f, 0, '-', '-', minus);
    int rc = write_side(f, b, false, 0, err);
    if (rc == 0) rc = write_side(f, b, true, minus, err);
    if (rc == 0) rc = fsm_determine(ret, f, work, err);
    fsm_free(f);
    return rc;
}

bool number_is_within(const number_bounds *b, const json_t *number)
{
    double v = json_number_value(number);
    decimal d;
    bool huge;
    if (b->integer && v != floor(v)) return false;
    if (!decimal_of(number, &d, &huge) || huge) return false;
    int from_min = b->has_min ? decimal_compare(&d, &b->min) : 1;
    int to_max = b->has_max ? decimal_compare(&b->max, &d) : 1;
    if (from_min < 0 || (from_min == 0 && b->above_min) || to_max < 0 || (to_max == 0 && b->below_max))
        return false;
    if (!b->multiple) return true;
    int rest = 0;
    for (int place = -d.n_int; place < b->multiple_frac; place++)
        rest = (rest * 10 + digit_of(&d, place) - '0') % b->multiple;
    return rest == 0 && d.n_frac <= b->multiple_frac;
}
