"""Nothing here has to do with arguments."""


def report(args):
    print(args)
