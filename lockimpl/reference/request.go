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
	answerOver      = "over" // a newer request of the owner was there, or this one is done with
	answerLate      = "late"
)

// answer is the server's answer to a request.
type answer struct {
	word  string
	now   int64         // its clock, in ms
	token int64         // of a grant; of a forced unlock, up to which every hold is over
	ttl   time.Duration // of a grant, or of the hold that makes it busy
}

// request is something that may be asked of the server many times and happens
// at most once.
type request struct {
	c      *Client
	script script
	keys   []string
	owner  owner
	number int64
	valid  time.Duration // after which the server refuses it
	whole  bool          // its script is sent whole: one trip, and the server need not know it
	args   []any

	mayHaveRun bool      // one was sent and not answered
	since      time.Time // when the first was that was sent and not answered since the last answer
	refused    int       // errors that the server answered
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
		// A server that refuses may have run it: a proxy or a script that was
		// stopped says so afterwards.
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

// errNoAnswer: it may come later, or never.
var errNoAnswer = errors.New("no answer in time")

// run runs a script, and waits for its answer no longer than it should.
func (c *Client) run(ctx context.Context, how scriptRun, keys []string, args ...any) (any, error) {
	return bounded(ctx, c.answer, func(ctx context.Context) (any, error) { return how(ctx, c.rdb, keys, args...).Result() })
}

// scriptRun is a way to run a script, of redis.Script.
type scriptRun func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

// bounded waits for an answer for at most this time. An attempt that nobody waits for any
// more sends nothing more. Otherwise a server that was silent, and comes back without its
// scripts, would get the text of all these attempts at once.
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
	case got := <-done: // at the last instant
		return got.reply, got.err
	default:
		return none, errNoAnswer
	}
}

// serverNow estimates the server's time, and asks for it once.
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

// settle sends the request until it is answered, ctx ends, the client closes, or
// it is hopeless. The error says whether the request
// may have taken effect.
func (r *request) settle(ctx context.Context) (answer, error) {
	for failed := 0; ; failed++ {
		a, err := r.try(ctx)
		if err == nil && a.word != answerLate {
			return a, nil
		}
		if err == nil {
			continue // the clock is known again
		}
		if r.hopeless() {
			return a, r.unknownIf(err)
		}
		if gone := r.c.sleep(ctx, r.c.backoff(r.owner, failed, retryMax)); gone != nil {
			return a, r.unknownIf(bothErrors(gone, err))
		}
	}
}

// again begins a further call that sends the same request.
func (r *request) again() { r.since, r.refused = time.Time{}, 0 }

// hopeless: the server has refused it often enough, or it may have run so long
// ago that the server will forget.
func (r *request) hopeless() bool {
	return r.refused >= refusals || r.mayHaveRun && time.Since(r.since) >= patience
}

// bothErrors joins the reason of an end and the failure before it. If they are the same, it
// has the error once: an attempt and the wait after it may both end with the client.
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

// sleep waits; an error says why it did not to the end.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return c.over(ctx)
}

// over says why a call should not begin, or go on.
func (c *Client) over(ctx context.Context) error {
	if c.closing.Err() != nil {
		return lockimpl.ErrClosed
	}
	return context.Cause(ctx)
}
