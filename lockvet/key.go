package lockvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// A key is what is known of the expression that names a key.
type key struct {
	// id is equal for two expressions that name one key, or one family of keys such as "lock:" + id.
	id string
	// free says that the caller of the function chooses the whole key.
	free bool
	// lock says that a constant, a field or a function of the expression is named after a lock.
	lock bool
}

// forLocks are the names of things that have to do with locks. "Block", "clock" and "leaderboard" are none.
var forLocks = regexp.MustCompile(`(?i)(^|[^bc])lock|mutex|leader([^b]|$)|exclusive|acquire`)

// maxDepth is the greatest number of steps from an expression to what it is made of. A variable may be
// made of itself.
const maxDepth = 8

// keyOf returns what is known of an expression that stands at a place.
func (r *reading) keyOf(e ast.Expr, at inspector.Cursor) key { return r.key(e, at, 0) }

func (r *reading) key(e ast.Expr, at inspector.Cursor, depth int) key {
	e = ast.Unparen(e)
	unknown := key{id: fmt.Sprintf("expression at %d", e.Pos())}
	if depth > maxDepth {
		return unknown
	}
	if v := r.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
		text := constant.StringVal(v)
		return key{id: fmt.Sprintf("%q", text), lock: forLocks.MatchString(text) || forLocks.MatchString(lastName(e))}
	}
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		v := r.variable(e)
		switch {
		case v == nil:
			return unknown
		case v.IsField():
			sel, ok := e.(*ast.SelectorExpr)
			if !ok {
				return unknown
			}
			owner := named(r.TypesInfo.TypeOf(sel.X))
			return key{id: "field " + owner + "." + v.Name(), lock: forLocks.MatchString(owner[strings.LastIndexByte(owner, '/')+1:] + "." + v.Name())}
		case v.Parent() == v.Pkg().Scope():
			return key{id: "variable " + v.Pkg().Path() + "." + v.Name(), lock: forLocks.MatchString(v.Name())}
		case r.parameter(v, at):
			return key{id: "parameter", free: true}
		}
		if value := r.onlyValue(v, at); value != nil {
			k := r.key(value, at, depth+1)
			k.lock = k.lock || !k.free && forLocks.MatchString(v.Name())
			return k
		}
		return key{id: fmt.Sprintf("local %d", v.Pos())}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return unknown
		}
		x, y := r.part(e.X, at, depth), r.part(e.Y, at, depth)
		return key{id: x.id + " + " + y.id, free: x.free && y.free, lock: x.lock || y.lock}
	case *ast.CallExpr:
		if tv := r.TypesInfo.Types[e.Fun]; tv.IsType() && len(e.Args) == 1 {
			return r.key(e.Args[0], at, depth+1)
		}
		fn := callee(r.TypesInfo, e)
		if fn == nil || fn.Pkg() == nil {
			return unknown
		}
		k := key{id: fn.FullName() + "(", free: true}
		if own := strings.Contains(strings.SplitN(fn.Pkg().Path(), "/", 2)[0], ".") || fn.Pkg() == r.Pkg; own {
			k.lock = forLocks.MatchString(fn.Name())
		}
		for _, arg := range e.Args {
			part := r.part(arg, at, depth)
			k.id += part.id + ", "
			k.lock = k.lock || part.lock
			k.free = k.free && part.free
		}
		k.id += ")"
		return k
	}
	return unknown
}

// carriers returns the fields to which the function around a place gives the variable that an expression is,
// as one that returns &hold{key: key} does. Methods of the hold name the key by the field.
func (r *reading) carriers(e ast.Expr, at inspector.Cursor) (fields []key) {
	v, fn := r.variable(e), declared(at)
	if v == nil || v.IsField() || fn == nil {
		return nil
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		owner := named(r.TypesInfo.TypeOf(literal))
		for i, value := range literal.Elts {
			name := ""
			if pair, ok := value.(*ast.KeyValueExpr); ok {
				name, value = lastName(pair.Key), pair.Value
			} else if t, ok := r.TypesInfo.TypeOf(literal).Underlying().(*types.Struct); ok {
				name = t.Field(i).Name()
			}
			if owner != "" && name != "" && r.variable(value) == v {
				fields = append(fields, key{id: "field " + owner + "." + name})
			}
		}
		return true
	})
	return fields
}

// part returns what is known of a part of a key. Two keys are of one family if they differ in parts that
// are variables of a function.
func (r *reading) part(e ast.Expr, at inspector.Cursor, depth int) key {
	k := r.key(e, at, depth+1)
	v := r.TypesInfo.Types[ast.Unparen(e)].Value
	switch {
	case v != nil && v.Kind() == constant.String:
		k.free = !strings.ContainsFunc(strings.NewReplacer("%s", "", "%d", "", "%v", "").Replace(constant.StringVal(v)), letter)
	case !strings.HasPrefix(k.id, `"`) && !strings.HasPrefix(k.id, "field ") && !strings.HasPrefix(k.id, "variable ") || k.free:
		return key{id: "*", free: true, lock: k.lock}
	}
	return k
}

func letter(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// variable returns the variable that an expression is, nil if it is none.
func (r *reading) variable(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := r.TypesInfo.ObjectOf(e).(*types.Var)
		return v
	case *ast.SelectorExpr:
		v, _ := r.TypesInfo.ObjectOf(e.Sel).(*types.Var)
		return v
	}
	return nil
}

// declared returns the function declaration around a place, nil if there is none.
func declared(at inspector.Cursor) *ast.FuncDecl {
	for c := range at.Enclosing((*ast.FuncDecl)(nil)) {
		return c.Node().(*ast.FuncDecl)
	}
	return nil
}

// innermost returns the function declaration or literal right around a place.
func innermost(at inspector.Cursor) ast.Node {
	for c := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		return c.Node()
	}
	return nil
}

// parameter reports whether a variable is a parameter or the receiver of a function around a place.
func (r *reading) parameter(v *types.Var, at inspector.Cursor) bool {
	for c := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		var t *ast.FuncType
		switch f := c.Node().(type) {
		case *ast.FuncDecl:
			t = f.Type
		case *ast.FuncLit:
			t = f.Type
		}
		if t.Params.Pos() <= v.Pos() && v.Pos() < t.Params.End() {
			return true
		}
	}
	return false
}

// onlyValue returns the expression that is the only value that a local variable ever has, nil if there
// is none.
func (r *reading) onlyValue(v *types.Var, at inspector.Cursor) ast.Expr {
	fn := declared(at)
	if fn == nil {
		return nil
	}
	var values []ast.Expr
	set := func(name ast.Expr, value ast.Expr) {
		if id, ok := name.(*ast.Ident); ok && r.TypesInfo.ObjectOf(id) == v {
			values = append(values, value)
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, name := range n.Lhs {
				switch {
				case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
					set(name, nil)
				case len(n.Lhs) == len(n.Rhs):
					set(name, n.Rhs[i])
				default:
					set(name, nil)
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				var value ast.Expr // nil for the zero value, and for one result of many
				if len(n.Names) == len(n.Values) {
					value = n.Values[i]
				}
				set(name, value)
			}
		case *ast.RangeStmt:
			set(n.Key, nil)
			set(n.Value, nil)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				set(n.X, nil)
			}
		}
		return true
	})
	if len(values) != 1 {
		return nil
	}
	return values[0]
}

// callee returns the function or method that a call calls, nil if it is known only when it runs.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		fn, _ := info.Uses[f].(*types.Func)
		return fn
	case *ast.SelectorExpr:
		fn, _ := info.Uses[f.Sel].(*types.Func)
		return fn
	}
	return nil
}

// named returns the path and the name of a type, without its pointer.
func named(t types.Type) string {
	if t == nil {
		return ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return n.Obj().Pkg().Path() + "." + n.Obj().Name()
}
