package judges

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 9
