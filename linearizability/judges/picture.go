package judges

import (
	"cmp"
	"errors"
	"io"

	"lockstep/linearizability"
	"lockstep/model/trace"
)

// Picture writes porcupine's picture of the settled history of a lock, with the faults of
// the run beside it, as [linearizability.Picture] does. The error says why there is no
// picture.
func Picture(t *trace.Run, lock string, w io.Writer) error {
	r := newRun(t)
	if r.resurrected(lock) {
		return errors.New("a failover brought a hold of " + lock + " back, and no history can say so")
	}
	var notes []linearizability.Note
	for _, f := range r.Faults {
		notes = append(notes, linearizability.Note{Of: cmp.Or(f.Process, "server"), AtNs: f.FromNs, ToNs: f.ToNs, Text: f.Text})
	}
	for _, o := range r.CallsOn(lock) {
		for _, m := range o.Sent {
			for _, e := range m.Hits {
				notes = append(notes, linearizability.Note{Of: e.Process, AtNs: e.AtNs, Text: e.Text})
			}
		}
	}
	opt := linearizability.Options{LeaseGrainNs: millisecond}
	return linearizability.Picture(lock, r.history(lock), opt, notes, w)
}
