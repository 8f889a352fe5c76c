// Package bpe counts tokens exactly as OpenAI's tokenizers o200k_base and cl100k_base do. Its tables of merges are
// made from the vocabularies of tiktoken-go-loader and embedded, so nothing is downloaded. Only the tests of this
// package import tiktoken-go, with which they compare counts, and the loader.
//
// tiktoken-go itself is not used for counting, because its time is quadratic in
// the longest run without a split point (100,000 letters take seconds), it
// allocates per token, and its Unicode tables follow the toolchain.
//
// # How a text is counted
//
// A hand-written splitter finds the pieces that the encoding's regular expression would match, one after the other,
// in a single pass and without backtracking further than a run of letters. Each file names the pattern that it
// follows. Classes of characters come from a checked-in table of Unicode 16.0.0, the version that tiktoken has, so
// that a count does not change with the toolchain.
//
// A piece is then encoded by merging pairs of tokens, lowest id first. The table of merges has ids instead of bytes.
// A test derives it from the vocabulary, and proves that merges reach every token. So there is no need to check first
// whether a piece is a token, and only the merges are kept: 1 MB in the program and 2.8 MB in memory for o200k_base.
//
//   - Pieces of up to 30 bytes are first looked up in a cache of fixed size. There is one cache per processor, and a
//     call uses one alone, so that a hit takes no lock and no allocation. The cache has whole pieces, so it never
//     gives a wrong answer.
//   - Pieces of up to 128 bytes are merged by scanning for the best pair.
//   - Longer ones are merged with a heap in windows of 4 KiB, joined at token boundaries that are proven to be those
//     of the whole piece (see long.go). If none of the boundaries that are tried is one, the count is marked as
//     estimated. No natural or random text is known for which that happens, only vocabularies made for the purpose.
//
// So time is linear in the text and memory is bounded by the window, whatever the text is. Each byte of invalid UTF-8
// counts as U+FFFD, in a corrected copy of the text. Special tokens in a text are ordinary text.
//
// One core of a small server counts 40 to 150 MB/s of prose, JSON, source and
// base64, 15 to 40 times as much as tiktoken-go, and takes 0.1 to 5 seconds for
// 16 MiB without a split point: runs of one character are the fastest, random
// blanks the slowest. BenchmarkCount and BenchmarkHostile measure both.
package bpe
