package realtime

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// recorder is a testing.TB that records the calls of its methods.
type recorder struct {
	testing.TB
	logs, errors int
}

func (r *recorder) Helper()                   {}
func (r *recorder) Logf(string, ...any)       { r.logs++ }
func (r *recorder) Errorf(_ string, _ ...any) { r.errors++ }

func TestACaseCountsAtTheFirstTryWithoutDifference(t *testing.T) {
	for blurred := range Tries + 2 {
		t.Run(fmt.Sprint(blurred, " blurred tries"), func(t *testing.T) {
			r := &recorder{}
			var tries []int
			held := Case(r, "case", func(try int) string {
				tries = append(tries, try)
				if try < blurred {
					return "blurred"
				}
				return ""
			})
			want := []int{0, 1, 2, 3}[:min(blurred+1, Tries)]
			if !slices.Equal(tries, want) || held != (blurred < Tries) || r.logs != min(blurred, Tries-1) || (r.errors == 1) == held {
				t.Errorf("tries %v, held %v, %d logs, %d errors; want tries %v", tries, held, r.logs, r.errors, want)
			}
		})
	}
}

// Each first try waits for the others, so the tries would hang if they ran one by one. A repeated
// try runs alone.
func TestARepeatedTryIsAlone(t *testing.T) {
	var first, all sync.WaitGroup
	first.Add(2)
	var playing atomic.Int32
	for range 2 {
		all.Go(func() {
			Case(&recorder{}, "case", func(try int) string {
				if try == 0 {
					first.Done()
					first.Wait()
					return "blurred"
				}
				if playing.Add(1) != 1 {
					t.Error("two repeated tries at once")
				}
				runtime.Gosched()
				playing.Add(-1)
				return ""
			})
		})
	}
	all.Wait()
}
