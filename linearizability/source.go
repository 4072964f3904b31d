package linearizability

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// History is the content of a history file.
type History struct {
	Ops   []Op
	Notes []Note
}

// Note is an event of the system that is not an operation, such as a fault.
type Note struct {
	Of   string // the part of the system that the event struck or that caused it
	AtNs int64
	ToNs int64 // when the event ended; at most AtNs for a note without a length
	Text string
}

// ReadHistory reads a whole history. It takes the formats of [Stream], and returns the same errors.
func ReadHistory(r io.Reader, file string) (*History, error) {
	var h History
	notes, err := Stream(r, file, func(op *Op) { h.Ops = append(h.Ops, *op) })
	if err != nil {
		return nil, err
	}
	h.Notes = notes
	return &h, nil
}

// Stream reads a history and hands over its operations in order of call, each as soon as it and all
// that were called before it are complete. Errors carry the name file. The content decides the
// format: JSON Lines, with one operation per line in order of call_ns, or the EDN that Jepsen
// writes about a lock. Either may be packed with gzip.
//
// The first line that is not valid ends the reading with a [*FormatError]: half a history would be
// judged wrongly. A history in which no thread calls anything gives a [*FormatError], too, because
// a judge would find every promise kept. Other errors are those of r, wrapped.
func Stream(r io.Reader, file string, each func(*Op)) ([]Note, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("reading history %s: gzip: %w", file, err)
		}
		in = bufio.NewReader(unpacked)
	}
	called := false
	handOver := func(op *Op) {
		called = called || !op.environment()
		each(op)
	}
	var notes []Note
	var err error
	if isEDN(in) {
		notes, err = streamJepsen(in, file, handOver)
	} else {
		err = streamLines(in, file, handOver)
	}
	switch {
	case err != nil:
		return nil, err
	case !called:
		return nil, &FormatError{file, 1, 1, "the history has no call of a thread, so there is nothing to judge; " +
			`a call is a line such as {"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":0,"return_ns":5,"outcome":"granted"}`}
	}
	return notes, nil
}

// isEDN looks at how the first entry begins: a JSON object has a string after
// its brace.
func isEDN(in *bufio.Reader) bool {
	for size := 64; ; size *= 2 {
		begin, err := in.Peek(size)
		rest := bytes.TrimLeft(begin, " \t\r\n,")
		if len(rest) > 1 || err != nil {
			if len(rest) == 0 {
				return false
			}
			inside := bytes.TrimLeft(rest[1:], " \t\r\n,")
			return bytes.IndexByte([]byte("#[;"), rest[0]) >= 0 || rest[0] == '{' && len(inside) > 0 && inside[0] == ':'
		}
	}
}
