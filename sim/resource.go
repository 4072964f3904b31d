package sim

import (
	"fmt"
	"maps"
	"time"

	"lockstep/model"
)

// Resources are numbers that locks guard, on a server of their own that no fault strikes.
type Resources struct {
	values map[string]int64
	fences map[string]int64 // the greatest token that each resource has seen
}

// NewResources returns resources with the values that they start with.
func NewResources(start map[string]int64) *Resources {
	r := &Resources{values: map[string]int64{}, fences: map[string]int64{}}
	maps.Copy(r.values, start)
	return r
}

// Visit is one request to a resource.
type Visit struct {
	Resource string
	Token    *int64 // the token that the caller shows to a fenced resource; nil: it is not fenced
	Write    bool
	Left     int64 // the value that a write leaves
	Take     int64 // the amount that a write has taken
}

// Visit answers a request with the event for the record: its phase is read, write or
// refused. A fenced resource refuses a token that is smaller than the greatest it has seen.
func (r *Resources) Visit(v Visit) model.Event {
	if v.Token != nil {
		greatest := r.fences[v.Resource]
		if *v.Token <= 0 || *v.Token < greatest {
			return model.Event{Kind: model.KindResource, Phase: "refused", Key: v.Resource, Value: *v.Token, Text: fmt.Sprintf("token %d, after %d", *v.Token, greatest)}
		}
		r.fences[v.Resource] = *v.Token
	}
	if !v.Write {
		return model.Event{Kind: model.KindResource, Phase: "read", Key: v.Resource, Value: r.values[v.Resource]}
	}
	r.values[v.Resource] = v.Left
	return model.Event{Kind: model.KindResource, Phase: "write", Key: v.Resource, Value: v.Left, Count: v.Take}
}

// Worker is a thread that works on a resource.
type Worker interface {
	Do(f func())
	Record(e model.Event)
	Sleep(d time.Duration)
}

// Work reads a resource, works for some time and writes the value less what it takes, unless less
// than keep would be left. visit makes a request to the resource and records the answer. token is
// the token for a fenced resource; nil: the resource is not fenced.
func Work(t Worker, visit func(Visit) model.Event, resource string, take int64, work time.Duration, keep, token *int64) (sold, refused bool) {
	ended := func(phase string, value int64) {
		t.Do(func() { t.Record(model.Event{Kind: model.KindUse, Phase: phase, Key: resource, Value: value}) })
	}
	t.Do(func() { t.Record(model.Event{Kind: model.KindUse, Phase: "start", Key: resource}) })
	seen := visit(Visit{Resource: resource, Token: token})
	if seen.Phase == "refused" {
		ended("refused", 0)
		return false, true
	}
	left := seen.Value - take
	if keep != nil && left < *keep {
		ended("sold_out", 0)
		return false, false
	}
	t.Sleep(work)
	if visit(Visit{Resource: resource, Token: token, Write: true, Left: left, Take: take}).Phase == "refused" {
		ended("refused", 0)
		return false, true
	}
	ended("end", take)
	return true, false
}
