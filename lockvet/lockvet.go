// Package lockvet finds mistakes in the use of distributed locks by reading source code. It needs no
// adapter and no run. It takes the locks that a package makes of Redis commands, and calls of redsync,
// redislock, rueidislock, etcd, Consul and the locks of PostgreSQL and MySQL.
//
// An Analyzer of golang.org/x/tools/go/analysis holds all rules. docs/lockvet.md says how often they are
// right.
package lockvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// A Rule is one kind of mistake. The Category of each diagnostic is the name of its rule.
type Rule struct {
	Name string
	// Text is a sentence that says what is wrong.
	Text string
	// Shown is a story, or the file of a recording, in which the mistake breaks a promise.
	Shown string
}

// The names of the rules.
const (
	deleteUnchecked   = "delete-unchecked"
	compareThenDelete = "compare-then-delete"
	noLease           = "no-lease"
	extendUnchecked   = "extend-unchecked"
	resultIgnored     = "result-ignored"
	lossIgnored       = "loss-ignored"
	fixedValue        = "fixed-value"
	getsetLock        = "getset-lock"
	poolLock          = "pool-lock"
	sharedSession     = "shared-session"
	wallClock         = "wall-clock"
)

// Rules are all rules.
var Rules = []Rule{
	{deleteUnchecked, "The key of a lock with a lease is deleted without a comparison of its value, so an unlock after the lease ends the hold of the next owner.", "misdelete"},
	{compareThenDelete, "The value of a lock is compared in one command and the key is deleted in another, and the lease may end between them.", "misdelete-between-get-and-del"},
	{noLease, "A lock gets its lease in a second command, or never, so a holder that dies may keep it for ever.", "results/peers-track-record/crash-of-a-holder-without-an-expiry/memcached-add-forever/1.lockstep"},
	{extendUnchecked, "The lease of a lock is extended without a comparison of its value in the same command, so a late renewal extends the hold of another owner.", "results/peers-track-record/extend-after-the-hold-is-lost/redsync-5-set-on-extend/1.lockstep"},
	{resultIgnored, "The result of an unlock or of an extension says whether the lock was still held, and nobody looks at it.", "results/peers-track-record/work-longer-than-the-lease/redislock/1.lockstep"},
	{lossIgnored, "The lock tells its holder that the hold is lost, and nobody listens.", "crashed-watchdog"},
	{fixedValue, "All holders of a lock write one value, so a comparison before the delete cannot tell them apart.", "results/recordings/SETNX-misdelete.lockstep"},
	{getsetLock, "GETSET overwrites the value of the holder before the caller knows whether the lock is free.", "results/recordings/wall-clocks-apart.lockstep"},
	{poolLock, "A lock that belongs to a connection is taken and given up through a pool, which may unlock on another connection.", "results/peers-track-record/unlock-through-the-pool/mysql-get-lock-pool/1.lockstep"},
	{sharedSession, "Two acquires of one etcd lock with one session both succeed, since the session is the owner.", "peers/known/testdata/ETCD-shared-session/mutual-exclusion.lockstep"},
	{wallClock, "An expiry that another process wrote is compared with the clock of this one.", "results/recordings/wall-clocks-apart.lockstep"},
}

// Analyzer reports every place that breaks a rule. Tests are not read: they delete keys to clean up.
var Analyzer = &analysis.Analyzer{
	Name:     "lockvet",
	Doc:      doc(),
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      run,
}

func doc() string {
	var b strings.Builder
	b.WriteString("find mistakes in the use of distributed locks\n\nRules:\n")
	for _, r := range Rules {
		fmt.Fprintf(&b, "  %s: %s\n", r.Name, r.Text)
	}
	b.WriteString("\nA comment //lockvet:ignore RULE REASON silences a rule on its line and on the line below.")
	return b.String()
}

// A reading is the analysis of one package.
type reading struct {
	*analysis.Pass
	commands []*command
	// reported are the ids of the keys for which a rule has reported something.
	reported map[string]map[string]bool
	silenced map[silence]bool
	// pooled are the calls that take locks of connections through pools, and unlocks says whether such
	// locks are given up through pools, too.
	pooled  []*ast.CallExpr
	unlocks bool
}

// A silence is a rule and a line on which it is silent.
type silence struct {
	file string
	line int
	rule string
}

func run(pass *analysis.Pass) (any, error) {
	r := &reading{Pass: pass, reported: map[string]map[string]bool{}, silenced: map[silence]bool{}}
	r.readComments()
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.CallExpr)(nil)) {
		if r.inTest(cur.Node().Pos()) {
			continue
		}
		r.collect(cur)
		r.checkResult(cur)
		r.checkLoss(cur)
		r.checkPool(cur)
		r.checkTable(cur)
		r.checkSession(cur)
	}
	r.checkUnlocks()
	r.checkCommands()
	return nil, nil
}

func (r *reading) inTest(pos token.Pos) bool {
	return strings.HasSuffix(r.Fset.File(pos).Name(), "_test.go")
}

// report reports that the code at a place breaks a rule, unless a comment silences it.
func (r *reading) report(at ast.Node, rule, format string, args ...any) {
	line := r.Fset.Position(at.Pos())
	if r.silenced[silence{line.Filename, line.Line, rule}] {
		return
	}
	r.Report(analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Category: rule, Message: fmt.Sprintf(format, args...) + " (" + rule + ")"})
}

// readComments reads the comments that silence rules. One without a known rule and a reason is reported
// and silences nothing.
func (r *reading) readComments() {
	for _, file := range r.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				text, ok := strings.CutPrefix(c.Text, "//lockvet:ignore")
				if !ok {
					continue
				}
				words := strings.Fields(text)
				switch known := len(words) > 0 && slices.ContainsFunc(Rules, func(rule Rule) bool { return rule.Name == words[0] }); {
				case !known:
					r.Report(analysis.Diagnostic{Pos: c.Pos(), End: c.End(), Category: "ignore", Message: "lockvet:ignore names no rule"})
				case len(words) == 1:
					r.Report(analysis.Diagnostic{Pos: c.Pos(), End: c.End(), Category: "ignore", Message: "lockvet:ignore " + words[0] + " gives no reason"})
				default:
					at := r.Fset.Position(c.Pos())
					for _, line := range []int{at.Line, r.Fset.Position(group.End()).Line + 1} {
						r.silenced[silence{at.Filename, line, words[0]}] = true
					}
				}
			}
		}
	}
}
