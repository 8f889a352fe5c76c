package demo

// What a byte of the prompt costs, relative to the plain price of input: read
// from the provider's cache, and written to it. A model of provider prices, not
// a bill: what a provider charges is tokens, and its cache expires.
const (
	cachedPrice = 0.1
	freshPrice  = 1.25
)

// price is what a request costs after the one before it.
func (r *received) price() float64 {
	return cachedPrice*float64(r.common) + freshPrice*float64(r.bytes-r.common)
}
