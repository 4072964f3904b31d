package lockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

const etcd = `^(?:go\.etcd\.io/etcd|github\.com/coreos/etcd)/(?:.*/)?concurrency\.`

var (
	// unlocks and extensions are methods whose result says whether the lock was held until then.
	unlocks    = regexp.MustCompile(`^github\.com/(?:go-redsync/redsync(?:/v\d+)?\.Mutex\.Unlock(?:Context)?|bsm/(?:redislock|redis-lock)\.Lock(?:er)?\.(?:Release|Unlock))$`)
	extensions = regexp.MustCompile(`^github\.com/(?:go-redsync/redsync(?:/v\d+)?\.Mutex\.(?:Extend|Valid)(?:Context)?|bsm/(?:redislock|redis-lock)\.Lock(?:er)?\.Refresh)$`)
	// losses are methods with a result that tells of the loss of the lock, which is a channel or a context.
	losses      = regexp.MustCompile(`^github\.com/(?:hashicorp/consul/api\.(?:Lock\.Lock|Semaphore\.Acquire)|redis/rueidis/rueidislock\.Locker\.(?:WithContext|TryWithContext|ForceWithContext))$`)
	newSession  = regexp.MustCompile(etcd + `NewSession$`)
	etcdSession = regexp.MustCompile(etcd + `Session$`)
	etcdMutex   = regexp.MustCompile(etcd + `NewMutex$`)
	etcdLocker  = regexp.MustCompile(etcd + `New(?:Mutex|Locker)$`)
	etcdLock    = regexp.MustCompile(etcd + `Mutex\.(?:Lock|TryLock)$`)
	etcdDone    = regexp.MustCompile(etcd + `(?:Session\.(?:Done|Ctx)|Mutex\.(?:IsOwner|Key|Header))$`)
	// pools are the methods of types that choose a connection for each statement.
	pools = regexp.MustCompile(`^(?:database/sql\.DB|github\.com/jmoiron/sqlx\.DB|github\.com/jackc/pgx/v[45]/pgxpool\.Pool|github\.com/uptrace/bun\.DB|github\.com/go-pg/pg(?:/v\d+)?\.DB)\.`)

	sessionLock   = regexp.MustCompile(`(?i)\b(?:pg_(?:try_)?advisory_lock(?:_shared)?|get_lock)\s*\(`)
	sessionUnlock = regexp.MustCompile(`(?i)\b(?:pg_advisory_unlock(?:_all|_shared)?|release(?:_all)?_locks?)\s*\(`)
	// xactLock is a statement that takes a lock of a transaction and does nothing else.
	xactLock = regexp.MustCompile(`(?i)^\s*select\s+pg_(?:try_)?advisory_xact_lock(?:_shared)?\s*\([^;]*\)\s*;?\s*$`)
	// lockTable are statements that take over the row of a lock once its expiry is over.
	lockTable = regexp.MustCompile(`(?is)\b(?:update|insert\s+into|delete\s+from)\s+\S*(?:lock|lease|leader)\S*\s.*\b\w*expir\w*"?\s*<=?\s*(?:\$\d+|\?|@\w+|:\w+)`)
)

// fullName returns the path of a package, the type of the receiver if there is one, and the name.
func fullName(fn *types.Func) string {
	if fn == nil || fn.Pkg() == nil {
		return ""
	}
	if recv := fn.Signature().Recv(); recv != nil {
		if owner := named(recv.Type()); owner != "" {
			return owner + "." + fn.Name()
		}
	}
	return fn.Pkg().Path() + "." + fn.Name()
}

// result returns the names that the results of a call are assigned to, and whether the results are
// dropped without a name.
func result(at inspector.Cursor) (names []ast.Expr, dropped bool) {
	switch parent := at.Parent().Node().(type) {
	case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt:
		return nil, true
	case *ast.AssignStmt:
		if len(parent.Rhs) == 1 {
			return parent.Lhs, false
		}
	case *ast.ValueSpec:
		if len(parent.Values) == 1 {
			for _, name := range parent.Names {
				names = append(names, name)
			}
		}
	}
	return names, false
}

func blank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// checkResult reports an unlock or an extension whose result is dropped. A blank name for the result of
// an unlock says that the caller knows of it.
func (r *reading) checkResult(at inspector.Cursor) {
	call := at.Node().(*ast.CallExpr)
	fn := callee(r.TypesInfo, call)
	name := fullName(fn)
	extends := extensions.MatchString(name)
	if !extends && !unlocks.MatchString(name) {
		return
	}
	names, dropped := result(at)
	switch {
	case extends && (dropped || len(names) > 0 && !slices.ContainsFunc(names, func(e ast.Expr) bool { return !blank(e) })):
		r.report(call, resultIgnored, "the result of %s is dropped, so the work goes on after the lock is lost", fn.Name())
	case dropped:
		r.report(call, resultIgnored, "the result of %s is dropped, so nobody learns that the lock was lost during the work", fn.Name())
	}
}

// checkLoss reports a lock whose holder does not listen to its loss.
func (r *reading) checkLoss(at inspector.Cursor) {
	call := at.Node().(*ast.CallExpr)
	fn := callee(r.TypesInfo, call)
	name := fullName(fn)
	if losses.MatchString(name) {
		if names, dropped := result(at); dropped || len(names) > 0 && blank(names[0]) {
			r.report(call, lossIgnored, "the first result of %s tells that the lock is lost, and it is dropped", fn.Name())
		}
		return
	}
	if etcdMutex.MatchString(name) && r.uses(newSession) && !r.uses(etcdDone) && !r.handsOut(etcdSession) {
		r.report(call, lossIgnored, "nothing in this package reads Done of the session, so the work goes on after the session and the lock are lost")
	}
}

// uses reports whether the package names a function.
func (r *reading) uses(names *regexp.Regexp) bool {
	for _, obj := range r.TypesInfo.Uses {
		if fn, ok := obj.(*types.Func); ok && names.MatchString(fullName(fn)) {
			return true
		}
	}
	return false
}

// handsOut reports whether a function of the package returns a value of a type, which others may look at.
func (r *reading) handsOut(names *regexp.Regexp) bool {
	for _, obj := range r.TypesInfo.Defs {
		if fn, ok := obj.(*types.Func); ok {
			for v := range fn.Signature().Results().Variables() {
				if names.MatchString(named(v.Type())) {
					return true
				}
			}
		}
	}
	return false
}

// checkPool reports a lock of a connection that is taken through a pool of connections.
func (r *reading) checkPool(at inspector.Cursor) {
	call := at.Node().(*ast.CallExpr)
	if _, ok := call.Fun.(*ast.SelectorExpr); !ok || !pools.MatchString(fullName(callee(r.TypesInfo, call))) {
		return
	}
	switch text := r.query(call, at); {
	case text == "" || r.oneConnection():
	case sessionUnlock.MatchString(text):
		r.unlocks = true
	case sessionLock.MatchString(text):
		r.pooled = append(r.pooled, call)
	case xactLock.MatchString(text):
		r.report(call, poolLock, "the transaction of this statement ends with it, and so does the lock; take it in a Tx")
	}
}

// checkUnlocks reports the locks that are taken through a pool, if they are given up through one. A lock
// that ends when its own pool is closed is none of them.
func (r *reading) checkUnlocks() {
	for _, call := range r.pooled {
		if r.unlocks {
			r.report(call, poolLock, "the lock belongs to the connection that %s chooses for this statement, and the unlock may go to another one; use a Conn", types.ExprString(call.Fun.(*ast.SelectorExpr).X))
		}
	}
}

// query returns the statement that a call sends, "" if it is not constant.
func (r *reading) query(call *ast.CallExpr, at inspector.Cursor) string {
	for _, arg := range call.Args {
		if text := r.sentence(arg, at, 0); text != "" {
			return text
		}
	}
	return ""
}

// sentence returns the constant text of an expression, or the format that it is made of.
func (r *reading) sentence(e ast.Expr, at inspector.Cursor, depth int) string {
	e = ast.Unparen(e)
	if text := r.text(e); text != "" || depth > maxDepth {
		return text
	}
	switch e := e.(type) {
	case *ast.Ident:
		if v := r.variable(e); v != nil && !v.IsField() {
			if value := r.onlyValue(v, at); value != nil {
				return r.sentence(value, at, depth+1)
			}
		}
	case *ast.CallExpr:
		if fullName(callee(r.TypesInfo, e)) == "fmt.Sprintf" {
			return r.text(e.Args[0])
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return r.sentence(e.X, at, depth+1) + r.sentence(e.Y, at, depth+1)
		}
	}
	return ""
}

// oneConnection reports whether the package limits a pool to one connection.
func (r *reading) oneConnection() bool {
	for _, file := range r.Files {
		found := false
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && fullName(callee(r.TypesInfo, call)) == "database/sql.DB.SetMaxOpenConns" {
				v := r.TypesInfo.Types[call.Args[0]].Value
				found = found || v != nil && v.ExactString() == "1"
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// checkTable reports a statement that takes over the row of a lock by the clock of this machine.
func (r *reading) checkTable(at inspector.Cursor) {
	call := at.Node().(*ast.CallExpr)
	sel, ok := call.Fun.(*ast.SelectorExpr)
	fn := declared(at)
	if !ok || fn == nil || !strings.Contains(sel.Sel.Name, "Exec") && !strings.Contains(sel.Sel.Name, "Query") && sel.Sel.Name != "Get" || !lockTable.MatchString(r.query(call, at)) {
		return
	}
	if now := r.derived(fn, r.isNow); slices.ContainsFunc(call.Args, now) {
		r.report(call, wallClock, "the process that wrote this expiry has another clock; compare it with the time of the database")
	}
}

// checkSession reports a mutex of etcd whose session outlives the call and whose key the caller chooses.
func (r *reading) checkSession(at inspector.Cursor) {
	call := at.Node().(*ast.CallExpr)
	fn := declared(at)
	if fn == nil || !etcdLocker.MatchString(fullName(callee(r.TypesInfo, call))) || len(call.Args) != 2 {
		return
	}
	session := r.variable(call.Args[0])
	shared := session != nil && (session.IsField() || session.Parent() == r.Pkg.Scope())
	if shared && r.chosen(call.Args[1], at) && r.locks(fn) && !r.guards(fn, at) {
		r.report(call, sharedSession, "the session is the owner of the lock: two calls with one key in this process both get it; put a local mutex in front, or make a session for each call")
	}
}

// guards reports whether a function keeps two calls with one key apart: it holds a mutex of this process at a place, and has
// looked into a map of the keys that are taken.
func (r *reading) guards(fn *ast.FuncDecl, at inspector.Cursor) bool {
	held, looked := false, false
	ast.Inspect(fn, func(n ast.Node) bool {
		if n == nil || n.Pos() >= at.Node().Pos() {
			return false
		}
		switch n := n.(type) {
		case *ast.DeferStmt, *ast.FuncLit:
			return false
		case *ast.IndexExpr:
			if t := r.TypesInfo.TypeOf(n.X); t != nil {
				_, table := t.Underlying().(*types.Map)
				looked = looked || table && held && r.chosen(n.Index, at)
			}
		case *ast.CallExpr:
			switch fullName(callee(r.TypesInfo, n)) {
			case "sync.Mutex.Lock", "sync.RWMutex.Lock":
				held, looked = true, false
			case "sync.Mutex.Unlock", "sync.RWMutex.Unlock":
				held = false
			}
		}
		return true
	})
	return held && looked
}

// chosen reports whether a key is made of a parameter of the function.
func (r *reading) chosen(e ast.Expr, at inspector.Cursor) bool {
	return r.derived(declared(at), func(e ast.Expr) bool {
		v := r.variable(e)
		return v != nil && !v.IsField() && r.parameter(v, at) && types.Identical(v.Type().Underlying(), types.Typ[types.String])
	})(e)
}

// locks reports whether a function takes a lock in the same call: it calls Lock or TryLock of the mutex.
func (r *reading) locks(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name := fullName(callee(r.TypesInfo, call))
			found = found || etcdLock.MatchString(name) || name == "sync.Locker.Lock"
		}
		return !found
	})
	return found
}
