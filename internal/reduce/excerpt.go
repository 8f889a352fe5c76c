package reduce

// Excerpt returns head and tail of the body of a call's result, with a note in the gap
// that names its pointer, in at most limit tokens. It is cut between lines where it can
// be. ok is false where the result fits already, and where limit is too small to say
// anything.
func (v View) Excerpt(i int, call *Call, limit uint64) (text string, ok bool) {
	tokens := v.items[i].group.Messages[call.Result].Blocks[0].Tokens
	return cutter{gauge: v.gauge}.cut(call.Body, tokens, limit, Pointer(call.Seq, call.Block))
}
