// Package render lays a reduced view out as messages and encodes them in a
// provider's format. The bytes are the product: the encoders are small, written
// out by hand, and give the same bytes for the same message on every machine.
package render
