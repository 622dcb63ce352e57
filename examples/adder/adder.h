/* Adds numbers written as text. */
#ifndef ADDER_H
#define ADDER_H

/* Adds the decimal numbers in text, separated by blanks or commas, into *sum. -1 when something is no number. */
int adder_sum(const char *text, long *sum);

#endif
