package marks

// pipeBlock is what a pipe takes whole or not at all.
const pipeBlock = 4096
