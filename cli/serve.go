package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/report"
)

func serveCommand(a *frame.App) *cobra.Command {
	addr := "127.0.0.1:7420"
	c := a.Command(frame.Guide{
		Use: "serve DIR", Short: "show a folder of results in a browser of this machine, as it grows",
		Long:     "Serve shows the index of a folder of results and the page of each recording, on this machine only, until it is interrupted. It follows a campaign that is under way.",
		Examples: []string{"serve results", "serve results --addr 127.0.0.1:8080"},
	}, func(in frame.Invocation) (int, error) { return serveFolder(a, in.Names, addr) })
	c.Flags().StringVar(&addr, "addr", addr, "the `ADDRESS` to listen on, with its port")
	c.ValidArgsFunction = frame.Folders
	return c
}

// serveFolder shows a folder of results on this machine only.
func serveFolder(a *frame.App, dirs []string, addr string) (int, error) {
	if len(dirs) != 1 {
		return 0, frame.Usagef("serve takes one folder of results, got %d", len(dirs))
	}
	if err := onLoopback(addr); err != nil {
		return 0, err
	}
	if err := frame.InputFolder(dirs[0], "serve takes a folder of results"); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(dirs[0])
	if err != nil {
		return 0, frame.Usagef("serve: %w", err)
	}
	defer func() { _ = root.Close() }()
	if _, err := ReadIndex(root, dirs[0]); err != nil {
		return 0, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return 0, frame.Usagef("serve: %w", err)
	}
	ctx, stop := a.Interruptible()
	defer stop()
	server := &http.Server{Handler: &folderServer{app: a, root: root, dir: dirs[0]}, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	fmt.Fprintf(a.Out, "%s on http://%s/ until interrupted\n", dirs[0], l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return 0, err
	}
	return frame.ExitOK, nil
}

// onLoopback refuses an address that another machine could reach.
func onLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return frame.Usagef("--addr %q: write an address with its port, as 127.0.0.1:7420", addr)
	}
	if !loopback(host) {
		return frame.Usagef("--addr %s: serve shows results on this machine only, and binds to 127.0.0.1, [::1] or localhost; another machine needs a tunnel of yours, or the pages that simrun report writes", addr)
	}
	return nil
}

// ownHost reports whether the header Host of a request names this machine.
func ownHost(header string) bool {
	host, port, err := net.SplitHostPort(header)
	if err != nil { // there is no port
		if host, port, err = net.SplitHostPort(header + ":80"); err != nil {
			return false
		}
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil && loopback(host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// A folderServer serves the index of a folder and the report of each recording in it. It
// makes them anew for every request.
type folderServer struct {
	app  *frame.App
	root *os.Root // opens no file outside the folder, not even through a link
	dir  string
	one  sync.Mutex // allows one world at a time
}

// ServeHTTP answers /, /stamp and /run/FILE.lockstep. The stamp changes when the folder
// changes.
func (s *folderServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Refuse any other host name, since a foreign site may have let its name resolve to this
	// address.
	if !ownHost(r.Host) {
		http.Error(w, "this server is for its own machine", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "there is nothing to change here", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	recording, isRun := strings.CutPrefix(r.URL.Path, "/run/")
	switch {
	case r.URL.Path == "/":
		s.index(w)
	case r.URL.Path == "/stamp":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, s.stamp())
	case isRun && strings.HasSuffix(recording, ".lockstep"):
		s.run(w, recording)
	default:
		http.NotFound(w, r)
	}
}

// stamp returns a text that changes when the files of the index change.
func (s *folderServer) stamp() string {
	var stamp strings.Builder
	for _, name := range indexed(s.root) {
		if info, err := s.root.Stat(name); err == nil {
			fmt.Fprintf(&stamp, "%s %d %d;", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp.String()
}

func (s *folderServer) index(w http.ResponseWriter) {
	stamp := s.stamp()
	x, err := ReadIndex(s.root, s.dir)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	x.Stamp = stamp
	x.EachRecording(func(recording string, link *string) { *link = href("run/" + recording) })
	page(w, func(b *bytes.Buffer) error { return report.WriteIndex(b, x) })
}

func (s *folderServer) run(w http.ResponseWriter, recording string) {
	s.one.Lock()
	defer s.one.Unlock()
	r, drawn, err := RunOf(s.app, s.root, s.dir, recording)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "there is no such recording", http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		page(w, func(b *bytes.Buffer) error { return report.WriteHTML(b, r, drawn) })
	}
}

// page sends a complete page or an error.
func page(w http.ResponseWriter, write func(*bytes.Buffer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}
