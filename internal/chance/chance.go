// Package chance lets a world answer crypto/rand.Reader for its own goroutines.
//
// The package replaces Reader once, while packages are initialized: a later write
// would race with tests that read Reader at the same time. It imports little, so that
// it is initialized early: a package that copies Reader in its own initialization, as
// github.com/google/uuid does, then most likely copies the replaced one.
package chance

import (
	"crypto/fips140"
	"crypto/rand"
	"io"
	"sync/atomic"
)

var (
	system = rand.Reader
	answer atomic.Pointer[func([]byte) bool]
)

func init() {
	if !fips140.Enabled() { // in FIPS 140 mode some functions refuse every other Reader
		rand.Reader = reader{}
	}
}

// reader reads from the system, unless a world answers.
type reader struct{}

func (reader) Read(b []byte) (int, error) {
	if f := answer.Load(); f != nil && (*f)(b) {
		return len(b), nil
	}
	return io.ReadFull(system, b)
}

// Answer sets the function that is asked before the system. It fills its argument and
// reports true, or leaves the argument to the system. Any goroutine may call it. A nil
// function ends this.
func Answer(f func([]byte) bool) {
	if f == nil {
		answer.Store(nil)
		return
	}
	answer.Store(&f)
}
