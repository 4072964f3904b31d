// Package retold judges locks of libraries that the module proxy does not serve. Each is told again in our own words,
// with the same requests in the same order, from its documentation and its public source. The clients below them are
// those of the other packages of this module, unmodified.
//
// What a library does is in a function with its name, and what a caller of the library does is in the methods of a
// handle.
package retold

import "time"

// ttl is the time to live that callers ask for.
const (
	ttl        = 8 * time.Second
	ttlSeconds = 8
)
