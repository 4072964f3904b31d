package server

import (
	"encoding/binary"
	"errors"
)

// errShort says that a record ends before its last field.
var errShort = errors.New("the record is too short")

// reader reads the fields of a record in jute's encoding: integers are big-endian, and texts,
// buffers and vectors begin with a length of 32 bits. After the first missing field, err is set and
// every value is zero.
type reader struct {
	left string
	err  error
}

func (r *reader) take(n int) string {
	if r.err != nil || n < 0 || n > len(r.left) {
		r.err = errShort
		return ""
	}
	text := r.left[:n]
	r.left = r.left[n:]
	return text
}

func (r *reader) bool() bool { return r.take(1) == "\x01" }

func (r *reader) int32() int32 {
	if b := r.take(4); r.err == nil {
		return int32(binary.BigEndian.Uint32([]byte(b)))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); r.err == nil {
		return int64(binary.BigEndian.Uint64([]byte(b)))
	}
	return 0
}

// text reads a text. A length of -1 stands for no text, which reads as an empty one.
func (r *reader) text() string {
	if n := r.int32(); n > 0 {
		return r.take(int(n))
	}
	return ""
}

// buffer reads bytes; nil if there are none, which is not the same as an empty buffer.
func (r *reader) buffer() []byte {
	n := r.int32()
	if n < 0 {
		return nil
	}
	return append([]byte{}, r.take(int(n))...)
}

// count reads the length of a vector.
func (r *reader) count() int {
	n := int(r.int32())
	if n > len(r.left) { // every element has at least one byte
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	return max(n, 0)
}

func (r *reader) texts() []string {
	list := []string{}
	for range r.count() {
		list = append(list, r.text())
	}
	return list
}

func (r *reader) acls() []acl {
	list := []acl{}
	for range r.count() {
		list = append(list, acl{r.int32(), r.text(), r.text()})
	}
	return list
}

// writer writes the fields of a record.
type writer []byte

func (w *writer) bool(b bool) {
	if b {
		*w = append(*w, 1)
	} else {
		*w = append(*w, 0)
	}
}

func (w *writer) int32(n int32) { *w = binary.BigEndian.AppendUint32(*w, uint32(n)) }
func (w *writer) int64(n int64) { *w = binary.BigEndian.AppendUint64(*w, uint64(n)) }

func (w *writer) text(s string) {
	w.int32(int32(len(s)))
	*w = append(*w, s...)
}

func (w *writer) buffer(b []byte) {
	if b == nil {
		w.int32(-1)
		return
	}
	w.text(string(b))
}

func (w *writer) texts(list []string) {
	w.int32(int32(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

func (w *writer) acls(list []acl) {
	w.int32(int32(len(list)))
	for _, a := range list {
		w.int32(a.perms)
		w.text(a.scheme)
		w.text(a.id)
	}
}

func (w *writer) stat(s stat) {
	w.int64(s.czxid)
	w.int64(s.mzxid)
	w.int64(s.ctimeMs)
	w.int64(s.mtimeMs)
	w.int32(s.version)
	w.int32(s.cversion)
	w.int32(s.aversion)
	w.int64(s.owner)
	w.int32(s.length)
	w.int32(s.children)
	w.int64(s.pzxid)
}

// frame returns the record after its length.
func (w writer) frame() []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(w)), uint32(len(w))), w...)
}
