/* calibrate_fit.h: from what each member of a cascade said, and whether it was right, to its calibration.
 *
 * All members have answered the same cases, so what every threshold would have meant for the whole cascade is
 * known: a case that member i passes on is right when what follows i is right. Members are therefore fitted
 * from the last but one to the first:
 *
 *     calibrate_member m[2] = {{.model = "home-chat-s", .said = s0, .right = r0},
 *                              {.model = "home-chat-m", .said = s1, .right = r1}};
 *     calibrate_fit(m, 2, 400, &(calibrate_goal){CALIBRATE_BEST}, err);
 *     m[0].cal.min_confidence;                 // 0.74
 *
 * Pure. */
#ifndef EVAL_CALIBRATE_FIT_H
#define EVAL_CALIBRATE_FIT_H

#include "ensemble/calibration.h"

#define CALIBRATE_BINS 10

typedef enum calibrate_aim {
    CALIBRATE_BEST,     /* the threshold with which the cascade is right most often; of several the lowest */
    CALIBRATE_ACCURACY, /* the lowest whose answers are right at least so often, of those a member gives
                           itself */
    CALIBRATE_SHARE     /* the highest that passes on at most this share of what a member is asked */
} calibrate_aim;

typedef struct calibrate_goal {
    calibrate_aim aim;
    double value; /* of the last two: 0 to 1 */
} calibrate_goal;

typedef struct calibrate_member {
    const char *model;
    double *said; /* [n]; owned by whoever calls */
    bool *right;  /* [n] */
    bool *after;  /* [n], filled: is the cascade right when it begins here? */
    /* Of all but the last: */
    calibration cal;
    double error_said, error_is; /* the expected calibration error before the map, and after it of cases that
                                    the map has not seen */
} calibrate_member;

/* SHOAL_ELIMIT: no threshold reaches the accuracy; the sentence says what can be had. */
int calibrate_fit(calibrate_member *m, size_t n_members, size_t n, const calibrate_goal *goal,
                  shoal_err *err);

/* How often the cascade is right when member i passes on what is under the threshold. */
double calibrate_accuracy(const calibrate_member *m, size_t i, size_t n, double threshold);
/* What the threshold means for member i alone. */
confidence_risk calibrate_risk(const calibrate_member *m, size_t i, size_t n, double threshold);

#endif
