// Package farm spreads campaigns over many machines by NATS JetStream. A program with JetStream has
// the command farm of simrun:
//
//	func main() { lockmain.Main(lockmain.Options{Locks: locks(), Farm: farm.JetStream{}}) }
//
// Tasks are messages of a stream that each worker pulls from. A message is removed when a worker
// has acknowledged it, and comes again when its worker falls silent. Results are objects of an
// object store, by the name of the task. Package explore/spread relies on neither of them.
package farm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"lockstep/explore/spread"
	"lockstep/internal/foreign"
)

// The names in a NATS account. A program that finds the stream, the consumer or the bucket uses
// them as they are, so the operator of a cluster may make them with other settings.
const (
	stream   = "LOCKSTEP_FARM"
	consumer = "workers"
	bucket   = "LOCKSTEP_RESULTS"
	tasks    = "lockstep.farm.task." // and the name of a task
	told     = "lockstep.farm.told"
)

const (
	// kept is the time after which JetStream forgets tasks and results. A coordinator that
	// still wants one offers its task again.
	kept = 24 * time.Hour
	// request limits the time of a request to the server. acknowledge limits the time in which the
	// end of a task is reported, which an interrupt does not cut short.
	request     = 10 * time.Second
	acknowledge = 3 * time.Second
)

// JetStream is NATS JetStream as the queue of a farm.
type JetStream struct {
	// Silence is the time after which a task comes again whose worker is silent; 0: five beats.
	Silence time.Duration
}

// Start implements spread.Engine. It starts a NATS server in this process. The server writes each
// message to the disk before it acknowledges the message.
func (JetStream) Start(dir, listen string) (url string, stop func(), err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s has no port that is a number", listen)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	n, err := server.NewServer(&server.Options{
		Host: host, Port: port, ServerName: "lockstep-farm", JetStream: true, StoreDir: dir, SyncAlways: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return "", nil, err
	}
	n.Start()
	stop = func() {
		n.Shutdown()
		n.WaitForShutdown()
	}
	if !n.ReadyForConnections(request) {
		stop()
		return "", nil, fmt.Errorf("no NATS server came up at %s within %v; is the port free?", listen, request)
	}
	if !n.JetStreamEnabled() {
		stop()
		return "", nil, fmt.Errorf("the NATS server cannot keep its data in %s", dir)
	}
	return n.ClientURL(), stop, nil
}

// credentials returns what the files say that the environment names, by the names that the nats command has for them.
func credentials() (all []nats.Option, err error) {
	if file := os.Getenv("NATS_CA"); file != "" {
		all = append(all, nats.RootCAs(file))
	}
	if file := os.Getenv("NATS_CERT"); file != "" {
		all = append(all, nats.ClientCert(file, os.Getenv("NATS_KEY")))
	}
	if file := os.Getenv("NATS_CREDS"); file != "" {
		all = append(all, nats.UserCredentials(file))
	}
	if file := os.Getenv("NATS_NKEY"); file != "" {
		nkey, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, err
		}
		all = append(all, nkey)
	}
	o := nats.GetDefaultOptions()
	for _, option := range all {
		if err := option(&o); err != nil {
			return nil, err
		}
	}
	if o.UserJWT != nil {
		_, err = o.UserJWT()
	}
	return all, err
}

// Open implements spread.Engine. It connects to a NATS server with JetStream, and makes the stream,
// the consumer and the bucket if they are not there. A lost connection is restored.
func (j JetStream) Open(ctx context.Context, urls string) (spread.Queue, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	options, err := credentials()
	if err != nil {
		return nil, &spread.RefusedError{Why: fmt.Sprintf("a file that the environment names: %v", err)}
	}
	options = append(options, nats.Name("lockstep "+name), nats.MaxReconnects(-1), nats.ReconnectWait(500*time.Millisecond))
	nc, err := nats.Connect(urls, options...)
	var malformed *url.Error
	var unknown *tls.CertificateVerificationError
	switch {
	case errors.As(err, &malformed): // its text has the password
		return nil, &spread.RefusedError{Why: fmt.Sprintf("%s: the URL cannot be read; write special characters of a user, a password or a token as %%XX", foreign.URLs(urls))}
	case errors.Is(err, nats.ErrAuthorization):
		return nil, &spread.RefusedError{Why: fmt.Sprintf("%s refuses the user; give its user and password as nats://USER:PASSWORD@HOST:PORT, its token as nats://TOKEN@HOST:PORT, or files by NATS_NKEY or NATS_CREDS: %v", foreign.URLs(urls), err)}
	case errors.As(err, &unknown):
		return nil, &spread.RefusedError{Why: fmt.Sprintf("%s: name the file of its authority by NATS_CA: %v", foreign.URLs(urls), err)}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", foreign.URLs(urls), err)
	}
	q := &queue{nc: nc, silence: j.Silence}
	if q.silence == 0 {
		q.silence = 5 * spread.Beat
	}
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	if err := q.prepare(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("%s: %w", foreign.URLs(urls), err)
	}
	return q, nil
}

type queue struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	tasks   jetstream.Consumer
	results jetstream.ObjectStore
	silence time.Duration
}

func (q *queue) prepare(ctx context.Context) (err error) {
	if q.js, err = jetstream.New(q.nc, jetstream.WithDefaultTimeout(request)); err != nil {
		return err
	}
	s, err := q.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{tasks + ">"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, MaxAge: kept,
		})
	}
	if err != nil {
		return err
	}
	q.tasks, err = s.Consumer(ctx, consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		q.tasks, err = s.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.silence, MaxAckPending: -1})
	}
	if err != nil {
		return err
	}
	q.results, err = q.js.ObjectStore(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		q.results, err = q.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket, Storage: jetstream.FileStorage, TTL: kept, Compression: true})
	}
	return err
}

// Offer implements spread.Queue. The subject of a task that is not done has a message.
func (q *queue) Offer(ctx context.Context, name string, task []byte) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	_, err := q.js.Publish(ctx, tasks+name, task, jetstream.WithExpectLastSequencePerSubject(0))
	var known *jetstream.APIError
	if errors.As(err, &known) && (known.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || known.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return nil
	}
	return err
}

// pull is the time for which a request for a task stays with the server.
const pull = time.Second

// Take implements spread.Queue.
func (q *queue) Take(ctx context.Context) (spread.Taken, error) {
	for {
		wait := pull
		if end, ok := ctx.Deadline(); ok {
			wait = max(min(wait, time.Until(end)), time.Millisecond)
		}
		got, err := q.tasks.Fetch(1, jetstream.FetchMaxWait(wait))
		if err != nil {
			return nil, err
		}
		if m := <-got.Messages(); m != nil {
			return taken{m}, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := got.Error(); err != nil {
			return nil, err
		}
	}
}

// Keep implements spread.Queue.
func (q *queue) Keep(ctx context.Context, name string, result []byte) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	_, err := q.results.PutBytes(ctx, name, result)
	return err
}

// Kept implements spread.Queue.
func (q *queue) Kept(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	o, err := q.results.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Close() }()
	text, err := io.ReadAll(o)
	if err != nil {
		return nil, err
	}
	if text == nil {
		text = []byte{}
	}
	return text, o.Error()
}

// Drop implements spread.Queue.
func (q *queue) Drop(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	err := q.results.Delete(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	return err
}

// Tell implements spread.Queue.
func (q *queue) Tell(text []byte) error { return q.nc.Publish(told, text) }

// Hear implements spread.Queue.
func (q *queue) Hear(ctx context.Context) (<-chan []byte, error) {
	in := make(chan *nats.Msg, 1024)
	sub, err := q.nc.ChanSubscribe(told, in)
	if err != nil {
		return nil, err
	}
	if err := q.nc.Flush(); err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	out := make(chan []byte)
	go func() {
		defer close(out)
		defer func() { _ = sub.Unsubscribe() }()
		for {
			select {
			case m := <-in:
				select {
				case out <- m.Data:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// Close implements spread.Queue.
func (q *queue) Close() { q.nc.Close() }

// taken is the message of a task.
type taken struct{ jetstream.Msg }

// Task implements spread.Taken.
func (t taken) Task() []byte { return t.Data() }

// Working implements spread.Taken.
func (t taken) Working() error { return t.InProgress() }

// Done implements spread.Taken. It waits for the server, so that the task is gone when it is
// offered again.
func (t taken) Done() error {
	ctx, cancel := context.WithTimeout(context.Background(), acknowledge)
	defer cancel()
	return t.DoubleAck(ctx)
}

// Return implements spread.Taken.
func (t taken) Return() error { return t.Nak() }
