# SPDX-License-Identifier: BSD-2-Clause
# One line of C per row of the layout table.
BEGIN { FS = "\t" }
/^#/ { next }
$2 == "" { printf "{\"%s\", 0, sizeof(struct %s), 0, %s},\n", $1, $1, $4; next }
{
	printf "{\"%s.%s\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s), %s, %s},\n", \
		$1, $2, $1, $2, $1, $2, $3, $4
}
