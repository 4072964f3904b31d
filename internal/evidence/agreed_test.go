package evidence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/cli/livetest"
)

// A run that cannot be played leaves the others alone. Bad input, and many such runs in a row, end all.
func TestRunsSideBySide(t *testing.T) {
	broken, bad := errors.New("the server is gone"), fmt.Errorf("here: %w", livetest.Unusable(errors.New("no such server")))
	for _, c := range []struct {
		name   string
		do     func(i int) error
		played int
		want   string
	}{
		{"all are played", func(int) error { return nil }, 30, "<nil>"},
		{"one is not", func(i int) error {
			if i == 4 {
				return broken
			}
			return nil
		}, 30, "1 of 30 runs could not be played, the first because of this: the server is gone"},
		{"nine in a row are not", func(i int) error {
			if i%10 > 0 {
				return broken
			}
			return nil
		}, 30, "27 of 30 runs could not be played, the first because of this: the server is gone"},
		{"none is", func(int) error { return broken }, cli.BrokenMost, "the server is gone"},
		{"the input is bad", func(i int) error {
			if i == 4 {
				return bad
			}
			return nil
		}, 5, "here: no such server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			played := 0
			err := sideBySide(context.Background(), 30, 1, "run", func(i int) error {
				played++
				return c.do(i)
			})
			// The next run may be on its way when the last error comes.
			if got := fmt.Sprint(err); got != c.want || played < c.played || played > c.played+1 {
				t.Errorf("%d runs: %s; want %d, %s", played, got, c.played, c.want)
			}
		})
	}
}

// An interrupt ends the runs that are under way, and their errors are not counted.
func TestAnInterruptEndsRunsSideBySide(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	var begun atomic.Int32
	err := sideBySide(ctx, 30, 2, "run", func(int) error {
		if begun.Add(1) == 2 {
			interrupt()
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "could not be played") || begun.Load() > 4 {
		t.Errorf("%d runs began: %v", begun.Load(), err)
	}
}

func TestATableSaysWhatIsKept(t *testing.T) {
	live, over := context.Background(), context.Background()
	over, end := context.WithCancel(over)
	end()
	broken := errors.New("the server is gone")
	const kept = "; the runs are kept"
	for _, c := range []struct {
		ctx  context.Context
		err  error
		kept string
		want string
	}{
		{live, nil, kept, "<nil>"},
		{live, broken, "", "the server is gone"},
		{live, broken, kept, "the server is gone; the runs are kept"},
		{over, context.Canceled, kept, "interrupted; the runs are kept"},
		{over, context.Canceled, "", "interrupted; a run that did not end is not judged"},
	} {
		if got := fmt.Sprint(tableError(c.ctx, c.err, c.kept)); got != c.want {
			t.Errorf("%v, %q: got %q, want %q", c.err, c.kept, got, c.want)
		}
	}
	var wrong frame.UsageError
	if err := tableError(live, livetest.Unusable(broken), kept); !errors.As(err, &wrong) {
		t.Errorf("bad input is no wrong call: %v", err)
	}
}
