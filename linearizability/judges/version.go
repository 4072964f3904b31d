package judges

// Version is the version of the judges: raised by hand whenever they say
// something else of the same record. Results that an older program wrote say so.
const Version = 4
