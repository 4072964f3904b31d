package known

// Version is the version of the list of defects. It is raised by hand whenever a
// finding becomes another defect, or none, or one for the first time. Results that an
// older program wrote say so.
const Version = 2
