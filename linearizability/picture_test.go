package linearizability

import (
	"bytes"
	"testing"
)

// TestAPictureIsTheSameEachTime draws a history that has several longest orders of one length: any
// of the threads may enter first, and then no other can.
func TestAPictureIsTheSameEachTime(t *testing.T) {
	ops := parse(t, `
		a/1 acquire 0..9 granted
		b/1 acquire 0..9 granted
		c/1 acquire 0..9 granted
		d/1 acquire 0..9 granted`)
	draw := func() string {
		var page bytes.Buffer
		if err := Picture("l", ops, Options{}, nil, &page); err != nil {
			t.Fatal(err)
		}
		return page.String()
	}
	first := draw()
	for range 20 {
		if draw() != first {
			t.Fatal("two pictures of one history differ")
		}
	}
}
