package lockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/inspector"
)

// onPurpose are the names of functions that remove a key whoever holds it.
var onPurpose = regexp.MustCompile(`(?i)force|reset|clear|purge|flush|admin|truncate`)

// redisTx is the type of a transaction with WATCH.
var redisTx = regexp.MustCompile(`redis.*\.Tx$`)

// checkCommands applies the rules on commands to the locks of the package.
func (r *reading) checkCommands() {
	claims := slices.DeleteFunc(slices.Clone(r.commands), func(c *command) bool { return !r.takesLock(c) })
	for _, claim := range claims {
		r.checkLease(claim)
	}
	for _, c := range r.commands {
		for _, claim := range claims {
			if !c.isFor(claim) || !r.sameLock(claim, c) || r.watched(c) {
				continue
			}
			found := false
			switch c.verb {
			case del:
				found = r.checkDelete(claim, c)
			case expire:
				found = r.checkExtend(claim, c)
			case getset:
				found = r.note(getsetLock, claim, c, "GETSET overwrites the value of whoever holds the lock, even if the caller does not get it; take the lock with SET NX PX alone")
			case get:
				found = r.checkClock(c)
			}
			if found {
				break
			}
		}
	}
	for _, claim := range claims {
		r.checkValue(claim)
	}
}

// takesLock reports whether a command takes a lock: it sets a key that was not there, its key, or the
// function around it, is named after a lock, and somebody reads whether the key was there.
func (r *reading) takesLock(c *command) bool {
	return c.verb == setnx && len(c.keys) == 1 && (c.keys[0].lock || r.inLock(c.at)) && !r.counts(c) && (c.pipeline || !unread(c))
}

// unread reports whether nobody reads if SETNX found a key. Such a key is a mark, as of an account that
// is locked.
func unread(c *command) bool {
	at := c.at
	if sel, ok := at.Parent().Node().(*ast.SelectorExpr); ok {
		if sel.Sel.Name == "Err" && !c.fails {
			return true
		}
		at = at.Parent().Parent()
	}
	names, dropped := result(at)
	return dropped || len(names) > 0 && blank(names[0]) && (!c.fails || blank(names[len(names)-1]))
}

// counts reports whether the package increments the key of a command, which is a counter then. If callers choose the key,
// only the function around the command counts.
func (r *reading) counts(c *command) bool {
	return slices.ContainsFunc(r.commands, func(other *command) bool {
		return other.verb == incr && other.hasKey(c.keys[0]) && (!c.keys[0].free || declared(other.at) == declared(c.at))
	})
}

// inLock reports whether the function around a place, its type or its package is named after a lock.
func (r *reading) inLock(at inspector.Cursor) bool {
	if forLocks.MatchString(r.Pkg.Name()) {
		return true
	}
	fn := declared(at)
	if fn == nil {
		return false
	}
	return forLocks.MatchString(fn.Name.Name) || fn.Recv != nil && forLocks.MatchString(types.ExprString(fn.Recv.List[0].Type))
}

// sameLock reports whether a command is for the lock that another one takes. If callers choose the key,
// both functions must be named after a lock: a cache has functions that set and delete any key.
func (r *reading) sameLock(claim, c *command) bool {
	k := claim.keys[0]
	return !k.free || k.lock || !c.hasKey(k) || r.inLock(claim.at) && r.inLock(c.at)
}

// watched reports whether a command is part of a transaction that fails if its key changed.
func (r *reading) watched(c *command) bool {
	fn := declared(c.at)
	for f := range c.at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		var t *ast.FuncType
		switch f := f.Node().(type) {
		case *ast.FuncDecl:
			t = f.Type
		case *ast.FuncLit:
			t = f.Type
		}
		for _, p := range t.Params.List {
			if redisTx.MatchString(named(r.TypesInfo.TypeOf(p.Type))) {
				return true
			}
		}
	}
	return slices.ContainsFunc(r.commands, func(other *command) bool { return other.verb == watch && fn != nil && declared(other.at) == fn })
}

// note reports what a rule finds at a command, remembers the key, and returns true.
func (r *reading) note(rule string, claim, c *command, format string, args ...any) bool {
	if r.reported[rule] == nil {
		r.reported[rule] = map[string]bool{}
	}
	r.reported[rule][claim.keys[0].id] = true
	r.report(c.call, rule, format, args...)
	return true
}

// placeOf says where a lock is taken.
func (r *reading) placeOf(claim *command) string {
	at := r.Fset.Position(claim.call.Pos())
	return filepath.Base(at.Filename) + ":" + strconv.Itoa(at.Line)
}

// checkDelete, checkExtend and checkClock report whether they found something.
func (r *reading) checkDelete(claim, c *command) bool {
	fn := declared(c.at)
	if claim.lease != given && !r.leasedLater(claim) || fn != nil && onPurpose.MatchString(fn.Name.Name) {
		return false
	}
	if r.compared(c) {
		return r.note(compareThenDelete, claim, c, "the lease of the lock taken at %s may end between the comparison and this DEL, which then deletes the key of the next owner; compare and delete in one script", r.placeOf(claim))
	}
	return r.note(deleteUnchecked, claim, c, "DEL removes the lock taken at %s whoever holds it; compare its value and delete it in one script", r.placeOf(claim))
}

func (r *reading) checkExtend(claim, c *command) bool {
	compared := r.compared(c)
	if claim.lease != given || innermost(claim.at) == innermost(c.at) && !compared {
		return false
	}
	what := "does not compare the value of the lock taken at %s, so it extends the hold of whoever has it by now; compare and extend in one script"
	if compared {
		what = "comes after the comparison, and the lease of the lock taken at %s may end between them; compare and extend in one script"
	}
	return r.note(extendUnchecked, claim, c, "this extension "+what, r.placeOf(claim))
}

// expiry returns the command that gives a lock its lease in the function that takes it, nil if there is none.
func (r *reading) expiry(claim *command) *command {
	for _, c := range r.commands {
		if c.verb == expire && c.hasKey(claim.keys[0]) && declared(c.at) == declared(claim.at) && c.call.Pos() > claim.call.Pos() {
			return c
		}
	}
	return nil
}

func (r *reading) leasedLater(claim *command) bool { return r.expiry(claim) != nil }

func (r *reading) checkLease(claim *command) {
	takeover := func(c *command) bool { return c.verb == getset && c.isFor(claim) } // by an expiry in the value
	if claim.lease != never || slices.ContainsFunc(r.commands, takeover) {
		return
	}
	switch c := r.expiry(claim); {
	case c != nil && claim.pipeline && c.pipeline:
		r.note(noLease, claim, c, "every try extends the lease of whoever holds the lock, whether or not it takes the lock; use SET NX PX")
	case c != nil:
		r.note(noLease, claim, c, "a holder that dies between SETNX and this EXPIRE keeps the lock for ever; use SET NX PX")
	case slices.ContainsFunc(r.commands, func(c *command) bool { return c.verb == del && c.isFor(claim) && r.sameLock(claim, c) }):
		r.note(noLease, claim, claim, "the lock has no lease: a holder that dies keeps it for ever; use SET NX PX")
	}
}

// checkValue reports a lock whose holders all write one value, if it is compared when it is given up.
func (r *reading) checkValue(claim *command) {
	if claim.value == nil || claim.lease != given || !r.fixed(claim.value) || r.reported[deleteUnchecked][claim.keys[0].id] {
		return
	}
	for _, c := range r.commands {
		if c != claim && c.isFor(claim) && r.sameLock(claim, c) && (c.verb == script || c.verb == del && r.compared(c)) {
			r.note(fixedValue, claim, claim, "every holder writes the same value, so the comparison at %s cannot tell them apart; write a random one", r.placeOf(c))
			return
		}
	}
}

// fixed reports whether an expression has one value in all processes.
func (r *reading) fixed(e ast.Expr) bool {
	e = ast.Unparen(e)
	if tv := r.TypesInfo.Types[e]; tv.Value != nil {
		return true
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	case *ast.CallExpr: // []byte("1")
		return r.TypesInfo.Types[e.Fun].IsType() && len(e.Args) == 1 && r.fixed(e.Args[0])
	}
	return false
}

// compared reports whether the function around a command has compared the value of its key before.
func (r *reading) compared(c *command) bool {
	fn := declared(c.at)
	if fn == nil {
		return false
	}
	for _, other := range r.commands {
		if other.verb != get && other.verb != getset || declared(other.at) != fn || other.call.Pos() > c.call.Pos() || !other.hasKey(c.keys[0]) {
			continue
		}
		from := r.derived(fn, func(e ast.Expr) bool { return e == other.call })
		found := false
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && n.Pos() < c.call.Pos() && !r.isNil(n.X) && !r.isNil(n.Y) && !r.isError(n.X) {
					found = found || from(n.X) || from(n.Y)
				}
			case *ast.CallExpr:
				if f := callee(r.TypesInfo, n); f != nil && n.Pos() < c.call.Pos() && slices.Contains([]string{"bytes.Equal", "strings.EqualFold", "strings.Compare", "bytes.Compare", "crypto/subtle.ConstantTimeCompare"}, f.FullName()) {
					found = found || slices.ContainsFunc(n.Args, from)
				}
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

func (r *reading) isNil(e ast.Expr) bool { return r.TypesInfo.Types[ast.Unparen(e)].IsNil() }

func (r *reading) isError(e ast.Expr) bool {
	t := r.TypesInfo.TypeOf(e)
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// derived returns a function that reports whether an expression of a function is made of one that
// source accepts, directly or through local variables.
func (r *reading) derived(fn ast.Node, source func(ast.Expr) bool) func(ast.Expr) bool {
	made := map[types.Object]bool{}
	from := func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if _, inner := n.(*ast.FuncLit); inner || !ok {
				return !inner && !found
			}
			id, named := e.(*ast.Ident)
			found = found || source(e) || named && made[r.TypesInfo.ObjectOf(id)]
			return !found
		})
		return found
	}
	for more := true; more; {
		more = false
		mark := func(name ast.Expr) {
			if v := r.variable(name); v != nil && !v.IsField() && !r.isError(name) && !made[v] {
				made[v], more = true, true
			}
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, value := range n.Rhs {
					if !from(value) {
						continue
					}
					if len(n.Lhs) == len(n.Rhs) {
						mark(n.Lhs[i])
						continue
					}
					for _, name := range n.Lhs {
						mark(name)
					}
				}
			case *ast.ValueSpec:
				if slices.ContainsFunc(n.Values, from) {
					for _, name := range n.Names {
						mark(name)
					}
				}
			}
			return true
		})
	}
	return from
}

// isNow reports whether an expression reads the clock of this machine.
func (r *reading) isNow(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := callee(r.TypesInfo, call)
	return fn != nil && slices.Contains([]string{"time.Now", "time.Since", "time.Until"}, fn.FullName())
}

// checkClock reports a comparison of the clock of this machine with the value of a lock.
func (r *reading) checkClock(c *command) bool {
	fn := declared(c.at)
	if fn == nil {
		return false
	}
	reported := false
	read := r.derived(fn, func(e ast.Expr) bool { return e == c.call })
	now := r.derived(fn, r.isNow)
	ast.Inspect(fn, func(n ast.Node) bool {
		found := false
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ}, n.Op) {
				found = read(n.X) && now(n.Y) && !now(n.X) || now(n.X) && read(n.Y) && !now(n.Y) || read(n.X) && r.since(n.X) || read(n.Y) && r.since(n.Y)
			}
		case *ast.CallExpr:
			f := callee(r.TypesInfo, n)
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if ok && f != nil && slices.Contains([]string{"(time.Time).Before", "(time.Time).After", "(time.Time).Compare"}, f.FullName()) {
				found = read(sel.X) && now(n.Args[0]) || now(sel.X) && read(n.Args[0])
			}
		}
		if found {
			r.report(n, wallClock, "the process that wrote this time has another clock; let the server end the lease (SET NX PX)")
			reported = true
		}
		return true
	})
	return reported
}

// since reports whether an expression calls time.Since or time.Until.
func (r *reading) since(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			f := callee(r.TypesInfo, call)
			found = found || f != nil && (f.FullName() == "time.Since" || f.FullName() == "time.Until")
		}
		return !found
	})
	return found
}
