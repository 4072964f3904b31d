package farm_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"lockstep/cli/frame/frametest"
	"lockstep/explore"
	"lockstep/explore/spread"
	"lockstep/internal/bad"
	"lockstep/internal/evidence"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/internal/realtime"
	"lockstep/lockmain"
	_ "lockstep/locktest/redistest"
	"lockstep/peers/farm"
)

// This program is simrun with the command farm, and evidence with the command standing. The tests start it, and farms start it to play
// their runs.
func TestMain(m *testing.M) {
	frametest.AsProgram(func() {
		o := lockmain.Options{Farm: farm.JetStream{}}
		if os.Args[1] == "standing" {
			evidence.Main(o)
		}
		lockmain.Main(o)
	})
	m.Run()
}

// process is simrun while it runs.
type process struct {
	*exec.Cmd
	args  string
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer // stdout and stderr
}

func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// begin starts simrun, which ends with the test. before is a shell command that runs first.
func begin(t *testing.T, before string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(self, args...), args: strings.Join(args, " "), ended: make(chan struct{})}
	if before != "" {
		p.Cmd = exec.Command("sh", append([]string{"-c", before + `; exec "$0" "$@"`, self}, args...)...)
	}
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.Stdout, p.Stderr = p, p
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s: exit %d\n%s", p.args, p.ProcessState.ExitCode(), p.said())
		}
	})
	return p
}

// patience limits the time for which a test waits for a process on a busy machine.
const patience = 3 * time.Minute

// end waits for the end of a process, which must have this exit code.
func (p *process) end(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%s does not end", p.args)
	}
	if got := p.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s: exit %d, want %d", p.args, got, code)
	}
}

// kill ends a process as kill -9 does.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// until waits until a condition holds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("after %v: not yet: %s", patience, what)
		}
	}
}

// played returns the number of runs in the folder of a farm.
func played(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "campaign", "runs.jsonl"))
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte("\n"))
}

// freePort returns an address with a port that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// campaign is what the farms of these tests play.
func campaign(t *testing.T) (args []string, runs int) {
	runs = longtest.Size(t, 330, 1530)
	return []string{"--lock", "setnx-del", "--faults", "pause", "--runs", strconv.Itoa(runs)}, runs
}

// onePlayed is the folder that one process writes for campaign, once a test has asked for it.
var onePlayed map[string]string

// sameAsOne compares the folder of a farm with the one that one process writes.
func sameAsOne(t *testing.T, dir string) {
	t.Helper()
	if onePlayed == nil {
		folder := t.TempDir()
		args, _ := campaign(t)
		begin(t, "", append([]string{"explore", "--out", folder, "--jobs", "1"}, args...)...).end(t, 1)
		onePlayed = filetest.Contents(t, folder)
	}
	got := filetest.Contents(t, filepath.Join(dir, "campaign"))
	if !maps.Equal(got, onePlayed) {
		t.Errorf("the folder of the farm has %v, and that of one process %v, or their contents differ", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(onePlayed)))
		for name, text := range onePlayed {
			if got[name] != text {
				t.Errorf("%s differs", name)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "queue")); err == nil {
		t.Error("the data of the queue is still there")
	}
}

func TestOneCommand(t *testing.T) {
	args, _ := campaign(t)
	dir := t.TempDir()
	begin(t, "", append([]string{"farm", "--dir", dir, "--workers", "2"}, args...)...).end(t, 1)
	sameAsOne(t, dir)
	// merge, which does not know queues, says that the campaign is complete.
	p := begin(t, "", "merge", filepath.Join(dir, "campaign"))
	p.end(t, 1)
	if strings.Contains(p.said(), "incomplete") {
		t.Error(p.said())
	}
	// The same command has nothing more to do.
	begin(t, "", append([]string{"farm", "--dir", dir, "--workers", "0"}, args...)...).end(t, 1)
	sameAsOne(t, dir)
}

// Workers are killed while they play, and others come. So are the processes in which they play.
func TestWorkersAreKilled(t *testing.T) {
	args, runs := campaign(t)
	dir, address := t.TempDir(), freePort(t)
	work := func() *process { return begin(t, "", "farm", "work", "--queue", "nats://"+address, "--workers", "1") }
	workers := []*process{work(), work()} // they wait for the coordinator
	coordinator := begin(t, "", append([]string{"farm", "--dir", dir, "--workers", "0", "--listen", address}, args...)...)
	for i := 0; played(dir) < runs; i++ {
		before := played(dir)
		if i > 3 {
			break
		}
		var player int
		until(t, "a worker plays", func() bool { player = playerOf(workers[i%2].Process.Pid); return player > 0 || played(dir) == runs })
		if player > 0 && i%2 == 1 {
			_ = syscall.Kill(player, syscall.SIGKILL)
		} else {
			workers[i%2].kill()
			workers[i%2] = work()
		}
		until(t, "more runs are played", func() bool { return played(dir) > before || played(dir) == runs })
	}
	coordinator.end(t, 1)
	sameAsOne(t, dir)
}

// playerOf returns the process in which a worker plays; 0: there is none.
func playerOf(worker int) int {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var pid, parent int
		var state string
		_, after, _ := bytes.Cut(text, []byte(") "))
		_, err1 := fmt.Sscan(string(after), &state, &parent)
		_, err2 := fmt.Sscan(string(text), &pid)
		if err1 == nil && err2 == nil && parent == worker && state != "Z" {
			return pid
		}
	}
	return 0
}

// The coordinator is killed again and again, with the workers in it and without.
func TestTheCoordinatorIsKilled(t *testing.T) {
	args, runs := campaign(t)
	dir, address := t.TempDir(), freePort(t)
	args = append([]string{"farm", "--dir", dir, "--workers", "1", "--listen", address}, args...)
	begin(t, "", "farm", "work", "--queue", "nats://"+address, "--workers", "1")
	for after := 1; after < runs; after += runs / 3 {
		coordinator := begin(t, "", args...)
		until(t, fmt.Sprintf("%d runs are played", after), func() bool { return played(dir) >= after })
		coordinator.kill()
	}
	begin(t, "", args...).end(t, 1)
	sameAsOne(t, dir)
}

// An interrupt ends a coordinator and a worker within 5 seconds, and the same command goes on.
func TestAnInterrupt(t *testing.T) {
	args, _ := campaign(t)
	realtime.Case(t, "an interrupt", func(int) (difference string) {
		dir, address := t.TempDir(), freePort(t)
		args := append([]string{"farm", "--dir", dir, "--workers", "1", "--listen", address}, args...)
		worker := begin(t, "", "farm", "work", "--queue", "nats://"+address, "--workers", "1")
		coordinator := begin(t, "", args...)
		until(t, "a family is played", func() bool { return played(dir) >= 100 })
		begun := time.Now()
		for _, p := range []*process{worker, coordinator} {
			if err := p.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		worker.end(t, 0)
		coordinator.end(t, 1) // it found a bug
		if took := time.Since(begun); took > 5*time.Second {
			difference = fmt.Sprintf("it took %v", took)
		}
		begin(t, "", args...).end(t, 1)
		sameAsOne(t, dir)
		return difference
	})
}

// A farm that is killed at any moment, most of them while it starts, goes on with the same command.
func TestAFarmIsKilledAtAnyMoment(t *testing.T) {
	const moments = 50 // of the first second
	bad.Counted(t, "farms that are killed", moments)
	args := func(dir string) []string {
		return []string{"farm", "--dir", dir, "--workers", "1", "--lock", "setnx-cad", "--runs", "4"}
	}
	whole := t.TempDir()
	begin(t, "", args(whole)...).end(t, 0)
	want := filetest.Contents(t, filepath.Join(whole, "campaign"))
	for i := 0; i < moments; i += longtest.Size(t, 25, 1) {
		dir, after := filepath.Join(t.TempDir(), "farm"), time.Duration(i*97%1000)*time.Millisecond
		killed := begin(t, "", args(dir)...)
		select {
		case <-killed.ended:
		case <-time.After(after):
			killed.kill()
		}
		begin(t, "", args(dir)...).end(t, 0)
		if got := filetest.Contents(t, filepath.Join(dir, "campaign")); !maps.Equal(got, want) {
			t.Errorf("killed after %v it comes to %v, want %v", after, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// A limit on the size of files takes the place of a full disk. A process that waits for the queue says so,
// and when there is room again the same command goes on.
func TestAFullDisk(t *testing.T) {
	args, _ := campaign(t)
	dir := t.TempDir()
	args = append([]string{"farm", "--dir", dir, "--workers", "1", "--patience", "2s"}, args...)
	p := begin(t, "ulimit -f 40", args...) // blocks of 512 or 1024 bytes
	p.end(t, 74)
	if !strings.Contains(p.said(), "input or output failed: ") {
		t.Error(p.said())
	}
	begin(t, "", args...).end(t, 1)
	sameAsOne(t, dir)
}

// A disk fills at some moment, because of somebody else's file. When that file is gone, the same command goes on.
func TestADiskThatFills(t *testing.T) {
	sizes := []int{8, 16, 32, 64}
	bad.Counted(t, "disks that fill under a farm", len(sizes))
	longtest.Only(t)
	args, runs := campaign(t)
	for i, size := range sizes {
		disk := t.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
			t.Skipf("only root can mount a disk of its own: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
		dir, theirs := filepath.Join(disk, "farm"), filepath.Join(disk, "theirs")
		args := append([]string{"farm", "--dir", dir, "--workers", "1", "--patience", "2s"}, args...)
		p := begin(t, "", args...)
		after := []int{1, runs / 2}[i%2]
		until(t, fmt.Sprintf("%d runs are played", after), func() bool { return played(dir) >= after })
		f, err := os.Create(theirs)
		if err != nil {
			t.Fatal(err)
		}
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		_ = f.Close()
		p.end(t, 74)
		if !strings.Contains(p.said(), "input or output failed: ") {
			t.Error(p.said())
		}
		if err := os.Remove(theirs); err != nil {
			t.Fatal(err)
		}
		begin(t, "", args...).end(t, 1)
		sameAsOne(t, dir)
	}
}

// A standing campaign goes on after its coordinator was killed, and finds its canary. Its folders
// equal those that explore writes, except for the number of runs in recordings.
func TestAStandingCampaign(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "standing.yaml")
	text := "campaigns:\n  - {lock: setnx-del, faults: [pause], weight: 2}\n  - {lock: setnx-cad}\ncanaries: [unlock-by-anyone]\nturn: 100\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"standing", file, "--dir", dir, "--workers", "1"}
	has := func(name, what string) bool {
		text, err := os.ReadFile(filepath.Join(dir, name))
		return err == nil && bytes.Contains(text, []byte(what))
	}
	const pauses, none = "setnx-del-pause-simple-told", "setnx-cad-none-simple-told"
	first := begin(t, "", args...)
	until(t, "the canary is found", func() bool { return has("canaries.json", `"round": 1`) })
	until(t, "a campaign is played", func() bool { return has(pauses+"/runs.jsonl", "\n") })
	first.kill()
	second := begin(t, "", args...)
	until(t, "both campaigns had a turn", func() bool {
		return has(pauses+"/verdicts.jsonl", "setnx-del") && has(none+"/verdicts.jsonl", "setnx-cad")
	})
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	second.end(t, 0)
	for _, want := range []string{"unlock-by-anyone", "as it must be", "SETNX-misdelete"} {
		if !has("index.html", want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for name, options := range map[string][]string{pauses: {"--lock", "setnx-del", "--faults", "pause"}, none: {"--lock", "setnx-cad"}} {
		var plan struct{ Runs int }
		text, err := os.ReadFile(filepath.Join(dir, name, "campaign.json"))
		if err == nil {
			err = json.Unmarshal(text, &plan)
		}
		if err != nil {
			t.Fatal(err)
		}
		var both [2]map[string]string
		for i, folder := range []string{filepath.Join(dir, name), t.TempDir()} { // explore plays the rest of the last turn
			p := begin(t, "", append([]string{"explore", "--keep-going", "--jobs", "1", "--runs", strconv.Itoa(plan.Runs), "--out", folder}, options...)...)
			<-p.ended
			both[i] = filetest.Contents(t, folder)
			for file, text := range both[i] { // a failure that was made small in an earlier turn says so
				both[i][file] = regexp.MustCompile("--runs [0-9]+").ReplaceAllString(text, "--runs N")
			}
		}
		if !maps.Equal(both[0], both[1]) {
			t.Errorf("%s has %v, and the folder that explore writes %v, or their contents differ", name, slices.Sorted(maps.Keys(both[0])), slices.Sorted(maps.Keys(both[1])))
		}
	}
}

// There are no workers, so the canary is not found in time. The page and the exit code say so.
func TestACanaryThatIsNotFound(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "standing.yaml")
	if err := os.WriteFile(file, []byte("campaigns: [{lock: setnx-del}]\ncanaries: [unlock-by-anyone]\nevery: 1s\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := begin(t, "", "standing", file, "--dir", dir, "--workers", "0")
	until(t, "the page says so", func() bool {
		page, err := os.ReadFile(filepath.Join(dir, "index.html"))
		return err == nil && bytes.Contains(page, []byte("The planted bug unlock-by-anyone was not found for 1s."))
	})
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.end(t, 1)
}

// The farm uses a queue that somebody else runs. A worker of another version refuses the work in
// it.
func TestAQueueOfSomebodyElse(t *testing.T) {
	e := farm.JetStream{}
	url := start(t, e, t.TempDir())
	args, _ := campaign(t)
	dir := t.TempDir()
	worker := begin(t, "", "farm", "work", "--queue", url, "--workers", "1")
	begin(t, "", append([]string{"farm", "--dir", dir, "--queue", url, "--workers", "0"}, args...)...).end(t, 1)
	sameAsOne(t, dir)

	q, err := e.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	task := spread.Task{Plan: explore.Plan{Lock: "setnx-del", Strategy: explore.StrategyPlain, Runs: 100}, Versions: explore.CurrentVersions()}
	task.Versions.Judges++
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Offer(t.Context(), task.Name(), text); err != nil {
		t.Fatal(err)
	}
	worker.end(t, 64)
	if want := "the queue has work of another version of this program (judges "; !strings.Contains(worker.said(), want) {
		t.Errorf("%s; want %q", worker.said(), want)
	}
}

// authority returns a certificate for 127.0.0.1 that nobody knows, and its file.
func authority(t *testing.T) (tls.Certificate, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	filetest.Write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text})))
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}, file
}

// seed returns the public part of an nkey, and the file of the other part.
func seed(t *testing.T) (public, file string) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err1 := pair.PublicKey()
	text, err2 := pair.Seed()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "user.nk")
	filetest.Write(t, file, string(text))
	return public, file
}

// The queue of somebody else may want a password, a token or a key, which no output shows, and may have a certificate of its own.
func TestAQueueWithAPassword(t *testing.T) {
	serve := func(o server.Options) string {
		o.Host, o.Port, o.JetStream, o.StoreDir, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, t.TempDir(), true, true
		n, err := server.NewServer(&o)
		if err != nil {
			t.Fatal(err)
		}
		n.Start()
		t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
		if !n.ReadyForConnections(patience) {
			t.Fatal("no server")
		}
		return n.Addr().String()
	}
	certificate, ca := authority(t)
	public, nkey := seed(t)
	_, stranger := seed(t)
	user := serve(server.Options{Username: "u", Password: "s3cret"})
	token := serve(server.Options{Authorization: "s3cret"})
	key := serve(server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	private := serve(server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, TLSTimeout: patience.Seconds(), Username: "u", Password: "s3cret"})
	args, _ := campaign(t)
	type given struct{ url, before, want string }
	right := []given{
		{"nats://u:s3cret@" + user, "", ""}, {"nats://s3cret@" + token, "", ""}, {"nats://" + key, "export NATS_NKEY=" + nkey, ""}, {"tls://u:s3cret@" + private, "export NATS_CA=" + ca, ""},
	}
	for _, c := range right {
		dir := t.TempDir()
		worker := begin(t, c.before, "farm", "work", "--queue", c.url, "--workers", "1")
		whole := begin(t, c.before, append([]string{"farm", "--dir", dir, "--queue", c.url, "--workers", "0"}, args...)...)
		whole.end(t, 1)
		sameAsOne(t, dir)
		for _, p := range []*process{worker, whole} {
			if strings.Contains(p.said(), "s3cret") {
				t.Errorf("the output of %s has the password", p.args)
			}
		}
	}
	wrong := []given{
		{"nats://" + user, "", "refuses the user"},
		{"nats://u:s3creT@" + user, "", "refuses the user"},
		{"nats://s3creT@" + token, "", "refuses the user"},
		{"nats://u:s3creT%zz@" + user, "", "the URL cannot be read"},
		{"nats://u:s3creT/@" + user, "", "the URL cannot be read"},
		{"nats://" + key, "", "NATS_NKEY"},
		{"nats://" + key, "export NATS_NKEY=" + stranger, "refuses the user"},
		{"nats://" + key, "export NATS_NKEY=/no/such/file", "a file that the environment names: "},
		{"nats://" + key, "export NATS_NKEY=" + ca, "a file that the environment names: "},
		{"nats://" + key, "export NATS_CREDS=/no/such/file", "a file that the environment names: "},
		{"tls://u:s3creT@" + private, "", "name the file of its authority by NATS_CA: "},
		{"tls://u:s3creT@" + private, "export NATS_CA=" + ca, "refuses the user"},
		{"tls://u:s3creT@" + private, "export NATS_CA=" + nkey, "a file that the environment names: "},
		{"tls://u:s3creT@" + private, "export NATS_CERT=" + ca, "a file that the environment names: "},
	}
	bad.Counted(t, "queues with a password", len(right)+len(wrong))
	for i, c := range wrong {
		dir := filepath.Join(t.TempDir(), "farm")
		theirs := i == 0
		if theirs {
			filetest.Write(t, dir+"/theirs", "")
		}
		worker := begin(t, c.before, "farm", "work", "--queue", c.url, "--workers", "1")
		farm := begin(t, c.before, append([]string{"farm", "--dir", dir, "--queue", c.url, "--workers", "0"}, args...)...)
		for _, p := range []*process{worker, farm} {
			p.end(t, 64)
			if said := p.said(); !strings.Contains(said, c.want) || strings.Contains(said, "s3creT") {
				t.Errorf("%s, %s: %s; want %q, and no password", p.args, c.before, said, c.want)
			}
		}
		if _, err := os.Stat(dir); (err == nil) != theirs || theirs && !maps.Equal(filetest.Contents(t, dir), map[string]string{"theirs": ""}) {
			t.Errorf("%s, %s: it leaves %v, %v", farm.args, c.before, filetest.Contents(t, dir), err)
		}
	}
}

// The file of docs/scale.md is the file of a standing campaign.
func TestTheFileInTheDocuments(t *testing.T) {
	text, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\ncampaigns:")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/scale.md has no such file")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "standing.yaml")
	if err := os.WriteFile(file, []byte("campaigns:"+block), 0o644); err != nil {
		t.Fatal(err)
	}
	begin(t, "", "standing", file, "--dir", dir, "--workers", "0", "--time", "1s").end(t, 0)
}
