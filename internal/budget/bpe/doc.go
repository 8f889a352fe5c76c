// Package bpe counts tokens exactly as OpenAI's tokenizers o200k_base and
// cl100k_base do, from merges that are made of the vocabularies of tiktoken-go-loader:
// nothing is downloaded. It is the only package that imports tiktoken-go, as the oracle,
// and the loader, both in its tests.
//
// tiktoken-go itself is not used for counting, because its time is quadratic in
// the longest run without a split point (100,000 letters take seconds), it
// allocates per token, and its Unicode tables follow the toolchain.
//
// # How a text is counted
//
// A hand-written splitter finds the pieces that the encoding's regular expression
// would match, one after the other, in a single pass and without backtracking
// further than a run of letters. Each file names the pattern it follows. Classes
// of characters come from a table that is checked in, as of the Unicode version
// that tiktoken has (16.0.0), so that a count does not change with the toolchain.
//
// A piece is then encoded by merging pairs of tokens, lowest id first. The table
// of merges works on ids instead of bytes: it is derived from the vocabulary by a test,
// which also proves that every token is reached by merges.
// So whether a piece is itself a token need not be asked first, and only the
// merges are kept: 1 MB in the program and 2.8 MB in memory for o200k_base.
//
//   - Pieces of up to 30 bytes are looked up in a cache of fixed size first. There
//     is one per processor, handed out per call, so a hit takes no lock and no
//     allocation. The cache holds whole pieces and can never answer wrongly.
//   - Pieces of up to 128 bytes are merged by scanning for the best pair.
//   - Longer ones are merged with a heap in windows of 4 KiB, joined at token
//     boundaries that are proven to be those of the whole piece (see long.go).
//     Only where no such boundary is found among those tried is the count marked
//     as estimated. No natural or random text is known to need it; a vocabulary
//     made for the purpose does.
//
// So time is linear in the text and memory is bounded by the window, whatever the
// text is. Invalid UTF-8 counts as U+FFFD for every byte, in a corrected copy of
// the text; special tokens in a text are ordinary text.
//
// One core of a small server counts 40 to 150 MB/s of prose, JSON, source and
// base64, 15 to 40 times as much as tiktoken-go, and takes 0.1 to 5 seconds for
// 16 MiB without a split point: runs of one character are the fastest, random
// blanks the slowest. BenchmarkCount and BenchmarkHostile measure both.
package bpe
