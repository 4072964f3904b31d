package linearizability

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// History is what a file tells.
type History struct {
	Ops   []Op
	Notes []Note
}

// Note is something that befell the system and is no operation of it.
type Note struct {
	AtNs int64
	Text string
}

// ReadHistory reads a history in the format in which it is: JSON Lines (see
// [Read]), or what Jepsen writes of a lock, EDN; either may be packed with gzip.
// Errors are those of Read.
func ReadHistory(r io.Reader, file string) (*History, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("reading history %s: gzip: %w", file, err)
		}
		in = bufio.NewReader(unpacked)
	}
	if isEDN(in) {
		return readJepsen(in, file)
	}
	ops, err := Read(in, file)
	if err != nil {
		return nil, err
	}
	return &History{Ops: ops}, nil
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
