package lockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// luaComment is a comment of a line.
	luaComment = regexp.MustCompile(`--[^\n]*`)
	// luaCalls are the commands that a script sends, each with the number of its key in KEYS, if it names one.
	luaCalls = regexp.MustCompile(`\b(?:redis|server)\.p?call\s*\(\s*(?:['"](\w+)['"])?(?:\s*,\s*KEYS\s*\[\s*(\d+)\s*\])?`)
	luaTests = regexp.MustCompile(`==|~=`)
	// blind are the commands that read no value.
	blind = []verb{del, expire, "PUBLISH", "SPUBLISH", "EXISTS", "TIME", "TTL", "PTTL"}
)

// blindly returns the DELs and EXPIREs of a script, each as a command of its own, if the script reads no value and
// compares nothing. It returns nil for any other script.
func (c *command) blindly(lua string) (commands []*command) {
	lua = luaComment.ReplaceAllString(lua, "")
	if luaTests.MatchString(lua) {
		return nil
	}
	for _, call := range luaCalls.FindAllStringSubmatch(lua, -1) {
		v := verb(strings.ToUpper(call[1]))
		if plain, ok := verbs[strings.ToLower(call[1])]; ok {
			v = plain
		}
		if !slices.Contains(blind, v) {
			return nil
		}
		if n, err := strconv.Atoi(call[2]); err == nil && 0 < n && n <= len(c.keys) && (v == del || v == expire) {
			commands = append(commands, &command{verb: v, keys: c.keys[n-1 : n], call: c.call, at: c.at})
		}
	}
	return commands
}

// lua returns the constant text of the script that a call runs: an argument of the call, or of the function that made the
// script. It returns "" if the text is not known.
func (r *reading) lua(c *command) string {
	find := func(args []ast.Expr) string {
		for _, arg := range args {
			if text := r.sentence(r.made(arg, c), c.at, 0); luaCalls.MatchString(text) {
				return text
			}
		}
		return ""
	}
	if text := find(c.call.Args); text != "" {
		return text
	}
	if sel, ok := ast.Unparen(c.call.Fun).(*ast.SelectorExpr); ok {
		if made, ok := ast.Unparen(r.made(sel.X, c)).(*ast.CallExpr); ok {
			return find(made.Args)
		}
	}
	return ""
}

// made returns the only value of a variable of the package or of the function around a command, and any other expression
// as it is.
func (r *reading) made(e ast.Expr, c *command) ast.Expr {
	v := r.variable(e)
	if v == nil || v.IsField() || v.Pkg() != r.Pkg {
		return e
	}
	value := ast.Expr(nil)
	if v.Parent() == r.Pkg.Scope() {
		value = r.packageValue(v)
	} else {
		value = r.onlyValue(v, c.at)
	}
	if value == nil {
		return e
	}
	return value
}

// packageValue returns the value with which a variable of the package begins, nil if it has none or may get another.
func (r *reading) packageValue(v *types.Var) (value ast.Expr) {
	set := false
	for _, file := range r.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if r.TypesInfo.ObjectOf(name) == v && len(n.Names) == len(n.Values) {
						value = n.Values[i]
					}
				}
			case *ast.AssignStmt:
				set = set || slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return r.variable(e) == v })
			case *ast.UnaryExpr:
				set = set || n.Op == token.AND && r.variable(n.X) == v
			}
			return !set
		})
	}
	if set {
		return nil
	}
	return value
}
