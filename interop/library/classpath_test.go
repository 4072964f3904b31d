package library

import (
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOneBuildAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "builds")
	var building atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			release, err := lock(dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if n := building.Add(1); n != 1 {
				t.Errorf("%d builds at a time", n)
			}
			runtime.Gosched()
			building.Add(-1)
		})
	}
	all.Wait()
}
