// Command peers runs other libraries that shorten contexts over the same sessions as contextd, and
// measures what comes out by the same code:
//
//	make bench-peers CORPUS=folder
//
// It writes the sessions as JSON lines, one session a line, runs peers.py, openhands_sdk.py and peers.mjs over them
// (pinned in requirements.txt, requirements-openhands.txt and package-lock.json, installed below .build), and reads what they
// would have sent before each call, one call a line:
//
//	{"session":"…","peer":"…","step":122,"seconds":0.02,"items":[{"i":0},{"i":3,"text":"[cleared]"}]}
//
// step is how many messages there were, and items are what is left of them: message i as it is, with
// another text, with some of its calls only, or a message that the library wrote in place of those
// that it is of. A library is left after -seconds for a session. seconds are the library's own, without what converts messages for it.
//
// What is measured repeats to the digit, times do not: docs/performance.md has how much they vary.
package main
