package server

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// code is an error of the protocol; 0: none.
type code int32

const (
	codeOK            code = 0
	codeInconsistency code = -2 // an operation of a multi after the one that failed
	codeUnimplemented code = -6
	codeBadArguments  code = -8
	codeNoNode        code = -101
	codeNoAuth        code = -102
	codeBadVersion    code = -103
	codeNoChildren    code = -108 // ephemeral nodes have no children
	codeNodeExists    code = -110
	codeNotEmpty      code = -111
	codeInvalidACL    code = -114
	codeReconfigOff   code = -123
)

// The permissions of an acl.
const (
	permRead = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
)

type acl struct {
	perms      int32
	scheme, id string
}

var anyone = []acl{{31, "world", "anyone"}}

// containerOwner is the owner of a container.
const containerOwner = math.MinInt64

// node is a node of the tree.
type node struct {
	data                []byte
	acl                 []acl
	children            *javaSet // nil until the first child
	czxid, mzxid, pzxid int64
	ctimeMs, mtimeMs    int64
	version, aversion   int32
	created             int32 // number of children so far, which gives a sequential child its number
	owner               int64 // the session of an ephemeral node, containerOwner, or 0
}

// stat holds the facts about a node that an answer to a client has.
type stat struct {
	czxid, mzxid, pzxid         int64
	ctimeMs, mtimeMs            int64
	version, cversion, aversion int32
	owner                       int64
	length, children            int32
}

func (n *node) count() int {
	if n.children == nil {
		return 0
	}
	return len(n.children.inOrder)
}

func (n *node) stat() stat {
	count, owner := int32(n.count()), n.owner
	if owner == containerOwner {
		owner = 0
	}
	return stat{czxid: n.czxid, mzxid: n.mzxid, pzxid: n.pzxid, ctimeMs: n.ctimeMs, mtimeMs: n.mtimeMs, version: n.version,
		cversion: n.created*2 - count, aversion: n.aversion, owner: owner, length: int32(len(n.data)), children: count}
}

func (n *node) ephemeral() bool { return n.owner != 0 && n.owner != containerOwner }

func (n *node) list() []string {
	if n.children == nil {
		return []string{}
	}
	return n.children.list()
}

// allows reports whether clients have a permission for the node.
func (n *node) allows(perm int32) bool {
	return slices.ContainsFunc(n.acl, func(a acl) bool { return a.perms&perm != 0 })
}

// hidden reports whether nobody may read the node.
func (n *node) hidden() bool { return !n.allows(permRead) }

// tree is the data of the server.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]*javaSet // paths by session
	zxid       int64              // of the last transaction
}

// The nodes that every server has.
const (
	systemNode = "/zookeeper"
	quotaNode  = "/zookeeper/quota"
	configNode = "/zookeeper/config"
)

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]*javaSet{}}
	for _, path := range []string{"/", systemNode, configNode, quotaNode} {
		n := &node{data: []byte{}, acl: anyone}
		t.nodes[path] = n
		if path == configNode {
			n.acl, n.aversion = []acl{{permRead, "world", "anyone"}}, -1
		}
		if path != "/" {
			parent, name := split(path)
			t.nodes[parent].adopt(name)
		}
	}
	return t
}

// get returns the node that a read finds at a path; nil: there is none. An empty path also finds
// the root.
func (t *tree) get(path string) *node {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// isSystem reports whether a path is one of the nodes that every server has.
func isSystem(path string) bool {
	return path == "/" || path == systemNode || path == quotaNode || path == configNode
}

func (n *node) adopt(name string) {
	if n.children == nil {
		n.children = newJavaSet(8)
	}
	n.children.add(name)
}

// clone returns a copy that later changes of the tree do not affect.
func (t *tree) clone() *tree {
	c := &tree{nodes: make(map[string]*node, len(t.nodes)), ephemerals: make(map[int64]*javaSet, len(t.ephemerals)), zxid: t.zxid}
	for path, n := range t.nodes {
		m := *n
		if n.children != nil {
			m.children = n.children.clone()
		}
		c.nodes[path] = &m
	}
	for session, set := range t.ephemerals {
		c.ephemerals[session] = set.clone()
	}
	return c
}

// split returns the path of the parent and the name of a node.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

// validPath reports whether a path may be one of a node.
func validPath(path string) bool {
	switch {
	case !strings.HasPrefix(path, "/"):
		return false
	case path == "/":
		return true
	}
	for _, name := range strings.Split(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, func(c rune) bool {
		return c <= 0x1f || 0x7f <= c && c <= 0x9f || 0xd800 <= c && c <= 0xf8ff || 0xfff0 <= c && c <= 0xffff
	})
}

// sequenceDigits is the length of the number that the server appends to the path of a sequential node.
const sequenceDigits = 10

// The create modes of a request.
const (
	modePersistent = iota
	modeEphemeral
	modeSequential
	modeEphemeralSequential
	modeContainer
	modeTTL
	modeSequentialTTL
)

// The types of a watched event.
const (
	eventCreated = 1 + iota
	eventDeleted
	eventChanged
	eventChildren
)

// change is a change for which watches wait. A multi that fails fires no watches.
type change struct {
	event int32
	path  string
	// hidden: nobody may read the node, or, for eventChildren, the parent. Watches end without a
	// notification.
	hidden bool
}

// transaction is one change of the tree. Every request that may write is one, whether it
// succeeds or not.
type transaction struct {
	*tree
	zxid    int64
	timeMs  int64
	session int64
	changes []change
}

// begin begins a transaction and counts it.
func (t *tree) begin(timeMs, session int64) *transaction {
	t.zxid++
	return &transaction{tree: t, zxid: t.zxid, timeMs: timeMs, session: session}
}

// fixed returns the list of a request without duplicates. Only world:anyone is supported.
func fixed(list []acl) ([]acl, code) {
	var out []acl
	for _, a := range list {
		if a.scheme != "world" || a.id != "anyone" {
			return nil, codeInvalidACL
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, codeInvalidACL
	}
	return out, codeOK
}

// create makes a node and returns its path. Only the type of the request makes a container; the
// mode alone does not.
func (t *transaction) create(path string, data []byte, list []acl, mode int32, container bool) (string, code) {
	switch {
	case mode < modePersistent || mode > modeSequentialTTL:
		return "", codeBadArguments
	case mode == modeTTL || mode == modeSequentialTTL:
		return "", codeUnimplemented // a feature that is off by default
	case !strings.Contains(path, "/") || strings.Contains(path, "\x00"):
		return "", codeBadArguments
	}
	list, err := fixed(list)
	if err != codeOK {
		return "", err
	}
	parentPath, _ := split(path)
	parent := t.nodes[parentPath]
	if parent == nil {
		return "", codeNoNode
	}
	if !parent.allows(permCreate) {
		return "", codeNoAuth
	}
	if mode == modeSequential || mode == modeEphemeralSequential {
		path += fmt.Sprintf("%0*d", sequenceDigits, parent.created)
	}
	switch {
	case !validPath(path):
		return "", codeBadArguments
	case t.nodes[path] != nil:
		return "", codeNodeExists
	case parent.ephemeral():
		return "", codeNoChildren
	}
	n := &node{data: data, acl: list, czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid, ctimeMs: t.timeMs, mtimeMs: t.timeMs}
	switch {
	case container:
		n.owner = containerOwner
	case mode == modeEphemeral || mode == modeEphemeralSequential:
		n.owner = t.session
		if t.ephemerals[t.session] == nil {
			t.ephemerals[t.session] = newJavaSet(16)
		}
		t.ephemerals[t.session].add(path)
	}
	parent.created++
	parent.pzxid = t.zxid
	_, name := split(path)
	parent.adopt(name)
	t.nodes[path] = n
	t.changes = append(t.changes, change{eventCreated, path, n.hidden()}, change{eventChildren, parentPath, parent.hidden()})
	return path, codeOK
}

// anyVersion matches every version.
const anyVersion = -1

// delete removes a node if it has the version.
func (t *transaction) delete(path string, version int32) code {
	if !strings.Contains(path, "/") || strings.Contains(path, "\x00") || isSystem(path) {
		return codeBadArguments
	}
	parentPath, _ := split(path)
	parent, n := t.nodes[parentPath], t.nodes[path]
	switch {
	case parent == nil:
		return codeNoNode
	case !parent.allows(permDelete):
		return codeNoAuth
	case n == nil:
		return codeNoNode
	case version != anyVersion && version != n.version:
		return codeBadVersion
	case n.count() > 0:
		return codeNotEmpty
	}
	t.remove(path)
	return codeOK
}

// remove removes a node that exists and has no children.
func (t *transaction) remove(path string) {
	parentPath, name := split(path)
	parent, n := t.nodes[parentPath], t.nodes[path]
	parent.children.remove(name)
	parent.pzxid = t.zxid
	delete(t.nodes, path)
	if n.ephemeral() && t.ephemerals[n.owner] != nil {
		t.ephemerals[n.owner].remove(path)
	}
	t.changes = append(t.changes, change{eventDeleted, path, n.hidden()}, change{eventChildren, parentPath, parent.hidden()})
}

// set writes the data of a node if it has the version.
func (t *transaction) set(path string, data []byte, version int32) code {
	n, err := t.checked(path, permWrite)
	switch {
	case err != codeOK:
		return err
	case version != anyVersion && version != n.version:
		return codeBadVersion
	}
	n.data, n.mzxid, n.mtimeMs = data, t.zxid, t.timeMs
	n.version++
	t.changes = append(t.changes, change{eventChanged, path, n.hidden()})
	return codeOK
}

// setACL writes the permissions of a node.
func (t *transaction) setACL(path string, list []acl, version int32) code {
	if !validPath(path) {
		return codeBadArguments
	}
	list, err := fixed(list)
	if err != codeOK {
		return err
	}
	n, err := t.checked(path, permAdmin)
	switch {
	case err != codeOK:
		return err
	case version != anyVersion && version != n.aversion:
		return codeBadVersion
	}
	n.acl = list
	n.aversion++
	return codeOK
}

// check compares the version of a node.
func (t *transaction) check(path string, version int32) code {
	n, err := t.checked(path, permRead)
	if err == codeOK && version != anyVersion && version != n.version {
		err = codeBadVersion
	}
	return err
}

// checked returns a node if clients have a permission for it.
func (t *tree) checked(path string, perm int32) (*node, code) {
	n := t.nodes[path]
	switch {
	case !validPath(path):
		return nil, codeBadArguments
	case n == nil:
		return nil, codeNoNode
	case !n.allows(perm):
		return nil, codeNoAuth
	}
	return n, codeOK
}

// endSession removes the ephemeral nodes of a session and returns their paths.
func (t *transaction) endSession(session int64) []string {
	set := t.ephemerals[session]
	delete(t.ephemerals, session)
	if set == nil {
		return nil
	}
	paths := set.copied()
	for _, path := range paths {
		t.remove(path)
	}
	return paths
}

// paths returns the paths of all nodes in order.
func (t *tree) paths() []string { return slices.Sorted(maps.Keys(t.nodes)) }
