package embedded

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"lockstep/live"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A Kind is a kind of server that is part of this program. A view V has the state of the locks of a
// run in the server. Kind implements live.Kind.
type Kind[V any] struct {
	Program string // the name of the server
	Version string // of the server, as the server says it: a test binary does not know that of a module
	Is      func(sim.Server) bool
	// Serve starts the server on a folder, for the clients of l. Any goroutine may call changed. config
	// is the text that Config returned.
	Serve func(dir string, l net.Listener, config string, changed func()) (Reader[V], error)
	// Config returns the settings of a server of the world as a text for Serve; nil: it has none.
	Config func(sim.Server) string
	// View lets a server of the world show a view.
	View func(server sim.Server, view V)
	// Times says when the server has done what a message asks for. Its Stands is not set.
	Times live.Settle
	// Nothing is the function AsksNothing of live.Observed.
	Nothing func(message []byte) bool
}

// A Reader reads what a server holds, in the process of the server.
type Reader[V any] interface {
	// Look returns what the server held since the last Look, in order.
	Look(locks []string) ([]V, error)
	// Left returns the keys that the server has.
	Left() ([]string, error)
}

// A Deleter is a Reader of a server with an operator who deletes the keys that match a glob.
type Deleter interface {
	Delete(glob string) error
}

// variable tells a process of this program which server it is.
const variable = "LOCKSTEP_LIVE_SERVER"

// question and answer go between the run and the process of the server.
type question struct {
	Locks  []string
	Left   bool
	Delete string // a glob; "": nothing
}

type answer[V any] struct {
	Changed bool // the locks may have changed; it answers no question
	Views   []V
	Left    []string
	Err     string
}

// Register makes a kind of server known to live runs. If this process was started as such a server,
// Register runs the server, and does not return.
func Register[V any](k Kind[V]) {
	if os.Getenv(variable) == k.Program && len(os.Args) == 4 {
		runtime.GOMAXPROCS(max(2, runtime.NumCPU()))
		out := os.Stdout
		os.Stdout = os.Stderr // the server may print something
		if err := k.run(os.Stdin, out, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	live.RegisterKind(&k)
}

// run is the process of the server.
func (k *Kind[V]) run(in io.Reader, out io.Writer, dir, addr, config string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	enc := gob.NewEncoder(out)
	var mu sync.Mutex
	tell := func(a answer[V]) {
		mu.Lock()
		defer mu.Unlock()
		if enc.Encode(a) != nil {
			os.Exit(1) // the run is over
		}
	}
	poke := make(chan struct{}, 1)
	r, err := k.Serve(dir, l, config, func() {
		select {
		case poke <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	go func() {
		for range poke {
			tell(answer[V]{Changed: true})
		}
	}()
	tell(answer[V]{}) // it serves
	dec := gob.NewDecoder(in)
	for {
		var q question
		if dec.Decode(&q) != nil {
			return nil
		}
		var a answer[V]
		switch d, deletes := r.(Deleter); {
		case q.Left:
			a.Left, err = r.Left()
		case q.Delete == "":
			a.Views, err = r.Look(q.Locks)
		case deletes:
			err = d.Delete(q.Delete)
		default:
			err = fmt.Errorf("no operator removes keys: %s", q.Delete)
		}
		if err != nil {
			a.Err = err.Error()
		}
		tell(a)
	}
}

// Name implements live.Kind.
func (k *Kind[V]) Name() string { return k.Program }

// Models implements live.Kind.
func (k *Kind[V]) Models(s sim.Server) bool { return k.Is(s) }

// Ready implements live.Kind. The server is part of this program.
func (*Kind[V]) Ready() error { return nil }

// Lacks implements live.Kind.
func (k *Kind[V]) Lacks(_ *scenarios.Scenario, l *subject.Subject) string {
	if n := l.Servers.Count(); n != 1 {
		return fmt.Sprintf("%s is on %d servers, and live has one %s", l.Name, n, k.Program)
	}
	return ""
}

// LacksFault implements live.Kind.
func (*Kind[V]) LacksFault(model.FaultSpec) string { return "" }

// Start implements live.Kind.
func (k *Kind[V]) Start(o live.StartOptions) ([]live.Server, error) {
	nodes := o.Lock.Servers.New(nil, subject.ServerOptions{}).Nodes
	return live.StartEach(len(nodes), func(i int) (live.Server, error) {
		p := &process[V]{k: k, o: o, changed: make(chan struct{}, 1)}
		if k.Config != nil {
			p.config = k.Config(nodes[i].Server)
		}
		var err error
		for range 3 { // somebody may take the port before the server does
			if p.addr, err = o.Free(); err != nil {
				return nil, err
			}
			if err = p.launch(fmt.Sprintf("%s-%d", k.Program, i+1)); err == nil {
				return p, nil
			}
		}
		return nil, err
	})
}

// process is a server of a run. It implements live.Observed.
type process[V any] struct {
	k       *Kind[V]
	o       live.StartOptions
	config  string
	addr    string
	dir     string
	cmd     *exec.Cmd
	over    chan struct{}
	enc     *gob.Encoder
	in      io.Closer
	answers chan answer[V]
	changed chan struct{}
}

// patience is how long the server may take to start, and to answer the run.
const patience = 2 * time.Minute

// launch starts the process on a folder, and waits until it serves.
func (p *process[V]) launch(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.dir = filepath.Join(p.o.Dir, dir)
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(p.o.Dir, p.k.Program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(self, p.dir, p.addr, p.config)
	p.cmd.Env = append(os.Environ(), variable+"="+p.k.Program)
	p.cmd.Stderr = log
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.o.Spawn(p.cmd); err != nil {
		return fmt.Errorf("%s does not start: %w", p.k.Program, err)
	}
	p.in, p.enc, p.over, p.answers = in, gob.NewEncoder(in), make(chan struct{}), make(chan answer[V], 1)
	go func(cmd *exec.Cmd, over chan struct{}, answers chan answer[V]) {
		defer close(over)
		dec := gob.NewDecoder(out)
		for {
			var a answer[V]
			if dec.Decode(&a) != nil {
				break
			}
			if !a.Changed {
				answers <- a
				continue
			}
			select {
			case p.changed <- struct{}{}:
			default:
			}
		}
		_ = cmd.Wait()
	}(p.cmd, p.over, p.answers)
	if _, err := p.answer(); err != nil {
		p.Stop()
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s at %s: %w\n%s", p.k.Program, p.addr, err, text)
	}
	return nil
}

var errEnded = errors.New("it ended")

// answer waits for the next answer of the process.
func (p *process[V]) answer() (a answer[V], err error) {
	select {
	case a = <-p.answers:
	case <-p.over:
		select {
		case a = <-p.answers:
		default:
			return a, errEnded
		}
	case <-time.After(patience):
		return a, errors.New("it does not answer")
	}
	if a.Err != "" {
		return a, errors.New(a.Err)
	}
	return a, nil
}

// ask asks the process a question.
func (p *process[V]) ask(q question) (answer[V], error) {
	if err := p.enc.Encode(q); err != nil {
		return answer[V]{}, fmt.Errorf("the run cannot ask %s: %w", p.k.Program, err)
	}
	a, err := p.answer()
	if err != nil {
		err = fmt.Errorf("%s does not answer the run: %w", p.k.Program, err)
	}
	return a, err
}

// Addr implements live.Server.
func (p *process[V]) Addr() string { return p.addr }

// Version implements live.Server.
func (p *process[V]) Version() string { return p.k.Program + " " + p.k.Version }

// Pid implements live.Server.
func (p *process[V]) Pid() int { return p.cmd.Process.Pid }

// Restart implements live.Server.
func (p *process[V]) Restart(keepData bool) error {
	p.Stop()
	dir := filepath.Base(p.dir)
	if !keepData {
		dir += "+"
	}
	return p.launch(dir)
}

// Stop implements live.Server.
func (p *process[V]) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.in.Close()
	<-p.over
}

// Settle implements live.Observed.
func (p *process[V]) Settle() live.Settle { return p.k.Times }

// AsksNothing implements live.Observed.
func (p *process[V]) AsksNothing(message []byte) bool { return p.k.Nothing(message) }

// Look implements live.Observed.
func (p *process[V]) Look(locks []string) (views []any, err error) {
	a, err := p.ask(question{Locks: locks})
	for _, v := range a.Views {
		views = append(views, v)
	}
	return views, err
}

// Show implements live.Observed.
func (p *process[V]) Show(server sim.Server, view any, _ int64) { p.k.View(server, view.(V)) }

// Changed implements live.Observed.
func (p *process[V]) Changed() <-chan struct{} { return p.changed }

// Strike implements live.Observed.
func (p *process[V]) Strike(f model.FaultSpec) error {
	_, err := p.ask(question{Delete: f.Key})
	return err
}

// Left implements live.Observed.
func (p *process[V]) Left() ([]string, error) {
	a, err := p.ask(question{Left: true})
	return a.Left, err
}
