/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the class of the two CPUs right now and their distance: "N 57". */
#include "probe.h"

#include <stdio.h>

int main(void)
{
	double ns = distance();

	printf("%c %.0f\n", distance_class(ns), ns);
	return 0;
}
