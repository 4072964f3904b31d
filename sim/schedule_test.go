package sim

import "testing"

func TestEveryEventHasAnInstantOfItsOwn(t *testing.T) {
	var s schedule
	for range 3 * room {
		for _, c := range []Class{classStep, ClassDelivery, classFault, classExpiry} {
			s.add(3*slotNs+17, c, func() {})
		}
	}
	last, order := int64(-1), classExpiry
	for len(s.events) > 0 {
		e, at := s.next()
		if at <= last || e.class < order {
			t.Fatalf("class %d at %d ns after class %d at %d ns", e.class, at, order, last)
		}
		last, order = at, e.class
		s.pop(at)
	}
}
