package reference

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisclient"
)

// The server's answers to requests.
const (
	answerGranted   = "granted"
	answerBusy      = "busy"
	answerReleased  = "released"
	answerStillHeld = "still_held"
	answerNotHeld   = "not_held"
	answerForgotten = "forgotten"
	answerLeft      = "left"
	answerOver      = "over" // the owner has sent a newer request, or given this one up
	answerLate      = "late"
)

// answer is the server's answer to a request.
type answer struct {
	word  string
	now   int64         // its clock, in ms
	token int64         // of a grant; of a forced unlock: every hold with a token up to this one is over
	ttl   time.Duration // of a grant, or of the hold that makes the lock busy
}

// request is a request that may reach the server many times and takes effect at most once.
type request struct {
	c      *Client
	script script
	keys   []string
	owner  owner
	number int64
	valid  time.Duration // age at which the server refuses it
	whole  bool          // send the text of the script: one round trip, even if the server does not know it
	args   []any

	mayHaveRun bool      // an attempt was sent and not answered
	since      time.Time // when the first attempt without an answer since the last answer was sent
	refused    int       // number of errors that the server answered
}

// try sends the request once. The attempt is bounded in time and not by ctx, so that a
// cancelled call still learns the outcome of its request.
func (r *request) try(ctx context.Context) (answer, error) {
	ctx = context.WithoutCancel(ctx)
	now, err := r.c.serverNow(ctx)
	if err != nil {
		return answer{}, err
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	args := append([]any{r.owner.name, r.number, now + r.valid.Milliseconds(), Memory.Milliseconds()}, r.args...)
	run := r.script.Run
	if r.whole {
		run = r.script.Eval
	}
	reply, err := r.c.run(ctx, run, r.keys, args...)
	if err != nil {
		// A refused request may have run: a proxy may refuse afterwards, and so may a script that
		// was stopped.
		var refusal redis.Error
		answered := errors.As(err, &refusal)
		if answered {
			r.refused++
		}
		if r.c.closing.Err() != nil { // while it was under way
			r.mayHaveRun, err = true, lockimpl.ErrClosed
		}
		r.mayHaveRun = r.mayHaveRun || answered || r.c.retries || redisclient.MayHaveRun(err)
		return answer{}, err
	}
	a, err := parse(reply)
	if err != nil {
		return answer{}, err
	}
	r.c.clock.said(a.now)
	r.since = time.Time{}
	if a.word == answerLate {
		r.mayHaveRun = r.mayHaveRun || r.c.retries // go-redis may have sent it before, in time
	}
	return a, nil
}

// errNoAnswer: the answer may come later, or never.
var errNoAnswer = errors.New("no answer in time")

// run runs a script, and waits for its answer for a bounded time.
func (c *Client) run(ctx context.Context, how scriptRun, keys []string, args ...any) (any, error) {
	return bounded(ctx, c.answer, func(ctx context.Context) (any, error) { return how(ctx, c.rdb, keys, args...).Result() })
}

// scriptRun is a method of redis.Script that runs a script.
type scriptRun func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

// bounded waits for an answer for at most most. An attempt that nobody waits for any more sends no
// further command. Otherwise a server that was silent, and comes back without its scripts, would
// get the script texts of all these attempts at once.
func bounded[T any](ctx context.Context, most time.Duration, ask func(context.Context) (T, error)) (none T, err error) {
	type result struct {
		reply T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		reply, err := ask(ctx)
		done <- result{reply, err}
	}()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case got := <-done:
		return got.reply, got.err
	case <-t.C:
	}
	select {
	case got := <-done: // the answer came at the last instant
		return got.reply, got.err
	default:
		return none, errNoAnswer
	}
}

// serverNow estimates the server's time. It asks the server the first time.
func (c *Client) serverNow(ctx context.Context) (ms int64, err error) {
	if ms, known := c.clock.now(); known {
		return ms, nil
	}
	now, err := bounded(ctx, c.answer, func(ctx context.Context) (time.Time, error) { return c.rdb.Time(ctx).Result() })
	if err != nil {
		return 0, err
	}
	c.clock.said(now.UnixMilli())
	return now.UnixMilli(), nil
}

func parse(said any) (a answer, err error) {
	reply, _ := said.([]any)
	number := func(i int) (n int64) {
		switch v := reply[i].(type) {
		case int64:
			return v
		case string:
			n, err = strconv.ParseInt(v, 10, 64)
		}
		return n
	}
	if len(reply) < 2 {
		return a, fmt.Errorf("an answer that is none of this lock's: %v", said)
	}
	a.word, _ = reply[0].(string)
	a.now = number(1)
	if len(reply) > 3 {
		a.token = number(2)
	}
	if len(reply) > 2 {
		a.ttl = time.Duration(number(len(reply)-1)) * time.Millisecond
	}
	return a, err
}

// settle sends the request until the server answers, ctx ends, the client closes, or the request is
// hopeless. The error wraps ErrUnknownOutcome if the request may have taken effect.
func (r *request) settle(ctx context.Context) (answer, error) {
	for failed := 0; ; failed++ {
		a, err := r.try(ctx)
		if err == nil && a.word != answerLate {
			return a, nil
		}
		if err == nil {
			continue // the client knows the clock again
		}
		if r.hopeless() {
			return a, r.unknownIf(err)
		}
		if gone := r.c.sleep(ctx, r.c.backoff(r.owner, failed, retryMax)); gone != nil {
			return a, r.unknownIf(bothErrors(gone, err))
		}
	}
}

// startOver begins a further call that sends the same request.
func (r *request) startOver() { r.since, r.refused = time.Time{}, 0 }

// hopeless reports whether the server has refused the request often enough, or will soon forget it
// since it may have run so long ago.
func (r *request) hopeless() bool {
	return r.refused >= refusals || r.mayHaveRun && time.Since(r.since) >= patience
}

// bothErrors joins the reason for an end and the failure before it. It returns the error once if
// both are the same, since an attempt and the wait after it may both end with the client.
func bothErrors(why, failed error) error {
	if why != nil && errors.Is(failed, why) {
		return failed
	}
	return errors.Join(why, failed)
}

func (r *request) unknownIf(err error) error {
	if !r.mayHaveRun {
		return err
	}
	if err == nil {
		return lockimpl.ErrUnknownOutcome
	}
	return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
}

// sleep waits for d. If it returns early, its error has the reason.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return c.reasonToStop(ctx)
}

// reasonToStop returns the reason why a call should not begin or go on, or nil.
func (c *Client) reasonToStop(ctx context.Context) error {
	if c.closing.Err() != nil {
		return lockimpl.ErrClosed
	}
	return context.Cause(ctx)
}
