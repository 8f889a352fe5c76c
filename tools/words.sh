#!/usr/bin/env bash
# Checks that pages, protos and comments of Go code use plain words: prints each line with a word of
# words.txt, and fails if there is one. Code blocks of pages, generated code, test data and the changelog are not
# checked. It checks the files that git knows, or those that are named.
set -euo pipefail
cd "$(dirname "$0")/.."
words=tools/words.txt

skip='^CHANGELOG\.md$|\.pb\.go$|/testdata/'
while IFS=$'\t' read -r key path; do
	[ "$key" != skip ] || skip+="|$path"
done <"$words"
if [ $# = 0 ]; then set -- '*.md' '*.proto' '*.go'; fi

git ls-files -- "$@" | grep -vE "$skip" | xargs awk -F '\t' '
FILENAME == words {
	if ($0 ~ /^#/ || NF < 2 || $1 == "skip") next
	if ($1 == "ok") ok[++oks] = $2
	else { pattern[++patterns] = "[^a-z0-9_`.](" $1 ")[^a-z0-9_]"; instead[patterns] = $2 }
	next
}
FNR == 1 { fenced = ""; pages = FILENAME ~ /\.md$/ }
pages && /^[ \t]*(```|~~~~)/ {
	mark = /^[ \t]*`/ ? "`" : "~"
	if (fenced == "") fenced = mark
	else if (fenced == mark) fenced = ""
}
pages && (fenced != "" || /^    /) { next }
{
	text = $0
	if (!pages) {
		if (!match(text, /(^|[ \t])\/\/( |$)/)) next
		text = substr(text, RSTART)
	}
	text = " " tolower(text) " "
	for (i = 1; i <= oks; i++) gsub(ok[i], "", text)
	for (i = 1; i <= patterns; i++)
		if (match(text, pattern[i])) {
			word = substr(text, RSTART + 1, RLENGTH - 2)
			printf "%s:%d: \"%s\": write %s\n", FILENAME, FNR, word, instead[i]
			found = 1
		}
}
END { exit found }
' words="$words" "$words"
