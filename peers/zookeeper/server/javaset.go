package server

import (
	"math/bits"
	"slices"
	"unicode/utf16"
)

// javaSet is a set of texts in the order of java.util.HashSet. ZooKeeper lists children and ends
// ephemeral nodes in this order.
type javaSet struct {
	table   int      // the number of its buckets, a power of two
	inOrder []string // as they were added
}

// newJavaSet returns an empty set with table buckets, a power of two.
func newJavaSet(table int) *javaSet { return &javaSet{table: table} }

func (s *javaSet) add(text string) {
	if slices.Contains(s.inOrder, text) {
		return
	}
	s.inOrder = append(s.inOrder, text)
	if len(s.inOrder) > s.table/4*3 {
		s.table *= 2 // it never shrinks
	}
}

func (s *javaSet) remove(text string) {
	s.inOrder = slices.DeleteFunc(s.inOrder, func(t string) bool { return t == text })
}

func (s *javaSet) clone() *javaSet { return &javaSet{s.table, slices.Clone(s.inOrder)} }

// list returns the texts by bucket, and within a bucket as they were added. (In Java a bucket of
// more than eight texts is a tree, in another order.)
func (s *javaSet) list() []string {
	list := slices.Clone(s.inOrder)
	slices.SortStableFunc(list, func(a, b string) int { return s.bucket(a) - s.bucket(b) })
	return list
}

// copied returns the texts in the order of the HashSet that Java's method clone makes of this one.
func (s *javaSet) copied() []string {
	c := newJavaSet(1)
	if least := len(s.inOrder)*4/3 + 1; least > 1 {
		c.table = 1 << bits.Len(uint(least-1))
	}
	c.inOrder = s.list()
	return c.list()
}

// bucket returns the number of the bucket that a text is in.
func (s *javaSet) bucket(text string) int {
	var h uint32
	for _, unit := range utf16.Encode([]rune(text)) {
		h = 31*h + uint32(unit)
	}
	return int((h ^ h>>16) & uint32(s.table-1))
}
