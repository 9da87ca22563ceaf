/* stage_score.c: score stages: what a model makes of the rows of a table or a series, as one fact.
 *
 * With `alert` the gravest label counts: the first of the list that any row has, with the highest probability
 * of these rows; they are the stage's text, one a line ("m003 at 832: fault 0.970"). Where no row has one,
 * there is nothing to say and the label is the last row's. Without, the last row (`row`: or the one with the
 * highest or lowest number) is the fact and the text. */
#include <math.h>
#include <string.h>

#include "stages/stages.h"

#define ROWS_IN_TRACE 32

/* The probability of a row's label; of a model that gives numbers, the first. */
static double score_score_of(const Shoal__V1__ScoreReply *r, const Shoal__V1__ScoredRow *row)
{
    for (size_t i = 0; *row->label && i < r->n_labels && i < row->n_scores; i++)
        if (strcmp(r->labels[i], row->label) == 0) return row->scores[i];
    return row->n_scores ? row->scores[0] : 0;
}

/* The row that `row` means; reply->n_rows > 0. A number that is none is passed over. */
static size_t pick_row(const config_stage *st, const Shoal__V1__ScoreReply *reply)
{
    size_t best = reply->n_rows - 1;
    if (!st->row || strcmp(st->row, "last") == 0) return best;
    double sign = strcmp(st->row, "highest") == 0 ? 1 : -1, most = -INFINITY;
    for (size_t i = 0; i < reply->n_rows; i++) {
        double v = sign * score_score_of(reply, reply->rows[i]);
        if (!(v > most)) continue;
        most = v;
        best = i;
    }
    return best;
}

/* The first label of `alert` that any row has; NULL: none. */
static const char *find_alert(const config_stage *st, const Shoal__V1__ScoreReply *reply)
{
    for (unsigned k = 0; k < st->n_alert; k++)
        for (size_t i = 0; i < reply->n_rows; i++)
            if (strcmp(reply->rows[i]->label, st->alert[k]) == 0) return st->alert[k];
    return NULL;
}

static void stage_score_put_row(stage_run *s, const Shoal__V1__ScoreReply *reply,
                                const Shoal__V1__ScoredRow *row)
{
    process_run *r = s->run;
    json_t *o = json_object();
    double score = score_score_of(reply, row);
    if (*row->sensor) process_put(r, o, "sensor", json_string(row->sensor));
    if (*row->time) process_put(r, o, "time", json_string(row->time));
    process_put(r, o, "line", json_integer(row->line));
    if (*row->label) process_put(r, o, "label", json_string(row->label));
    process_put(r, o, "score", process_rounded(score));
    process_add(r, s->results, o);
}

/* "m003 at 832: fault 0.970", "line 7: 21.5" */
static void say_row(stage_run *s, const Shoal__V1__ScoreReply *reply, const Shoal__V1__ScoredRow *row)
{
    double score = score_score_of(reply, row);
    if (s->text.len) buf_putc(&s->text, '\n');
    if (*row->sensor)
        buf_puts(&s->text, row->sensor);
    else
        buf_printf(&s->text, "line %u", row->line);
    if (*row->time) buf_printf(&s->text, " at %s", row->time);
    if (*row->label)
        buf_printf(&s->text, ": %s %.3f", row->label, score);
    else
        buf_printf(&s->text, ": %.6g", score);
}

/* The rows that count, which are one, or all of one label; further ones are counted only. False: none has a
 * score. */
static bool put_facts(stage_run *s, const Shoal__V1__ScoreReply *reply)
{
    const config_stage *st = s->stage;
    const char *alert = find_alert(st, reply);
    size_t picked = pick_row(st, reply), n = 0;
    double best = -INFINITY;
    for (size_t i = 0; i < reply->n_rows; i++) {
        const Shoal__V1__ScoredRow *row = reply->rows[i];
        if (alert ? strcmp(row->label, alert) != 0 : i != picked) continue;
        double score = score_score_of(reply, row);
        if (score > best) best = score;
        if (n++ >= ROWS_IN_TRACE) continue;
        stage_score_put_row(s, reply, row);
        if (alert || !st->n_alert) say_row(s, reply, row);
    }
    if (n > ROWS_IN_TRACE) buf_printf(&s->text, "\nand %zu more", n - ROWS_IN_TRACE);
    buf_puts(&s->label, alert ? alert : reply->rows[picked]->label);
    process_fact(s)->score = best;
    process_put(s->run, s->details, "found", json_integer((json_int_t)n));
    return isfinite(best);
}

static void on_scored(void *user, const call_result *r, const Shoal__V1__ScoreReply *reply)
{
    stage_run *s = user;
    if (r->status) {
        process_settle(s, r);
        return;
    }
    if (!reply || reply->n_rows == 0) {
        call_result failed = *r;
        failed.status = reply ? SHOAL_EINVALID : SHOAL_EPROTOCOL;
        failed.message =
            reply ? "the table has too few rows for a score: a series needs a whole window of each "
                    "sensor's"
                  : "the worker sent no result";
        process_settle(s, &failed);
        return;
    }
    s->results = json_array();
    s->details = json_object();
    process_put(s->run, s->details, "rows", json_integer((json_int_t)reply->n_read));
    process_put(s->run, s->details, "scored", json_integer((json_int_t)reply->n_rows));
    if (put_facts(s, reply))
        process_settle(s, r);
    else
        process_settle_broken(s, r, "the model's score is not a number");
}

static int start_score(stage_run *s, const call_context *ctx)
{
    Shoal__V1__ScoreRequest req = SHOAL__V1__SCORE_REQUEST__INIT;
    req.csv = process_file_of(s);
    s->call = calls_score(s->run->calls, s->stage->model, &req, ctx, on_scored, s);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_score = {.start = start_score};
